import { AgentRegistry } from '../../src/core/engine/agent-registry.ts'
import { createGateway } from '../../src/core/engine/gateway.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import type { Authorisation, Refusal } from '../../src/core/ports/payments.ts'
import type { ServerEvent } from '../../src/protocol/events.ts'
import { UampError } from '../../src/protocol/errors.ts'
import type { Meter } from '../../src/core/ports/transport.ts'
import type { Operation, Store } from '../../src/core/ports/store.ts'
import { storedSigner } from '../../src/auth/signer.ts'
import { Ledger } from '../../src/payments/ledger.ts'
import { passingKeys } from '../../src/stores/file-keys.ts'
import { memoryStore } from '../../src/stores/memory.ts'

export const payer = { tenant: 'default', id: 'payer', scopes: [] }
const PART = 1_000_000n

/** A store that fails where it is told to. */
export function failingStore() {
  const inner = memoryStore()
  let fails: (operations: readonly Operation[]) => boolean = () => false
  const store: Store = {
    ...inner,
    batch: (operations, options) =>
      fails(operations) ? Promise.reject(new UampError('overloaded', 'The disk is full')) : inner.batch(operations, options),
  }
  return { store, failWhen: (test: typeof fails) => void (fails = test) }
}

/** Movements of money are among them. */
export const movesMoney = (operations: readonly Operation[]): boolean =>
  operations.some((operation) => 'key' in operation && operation.key.includes('/money/'))

/** A ledger with a token, and a gateway whose agents are paid. Amounts are in thousandths. */
export async function world(
  agents: readonly AgentPort[],
  options: { perDay?: bigint; store?: Store; thousandths?: number; meter?: Partial<Meter> } = {},
) {
  const { store = memoryStore(), perDay, thousandths = 100, meter } = options
  const signer = storedSigner({ store, keys: passingKeys(), now: Date.now })
  const ledger = new Ledger({
    store,
    signer,
    ownUrl: () => undefined,
    log: () => undefined,
    now: Date.now,
    monotonic: () => performance.now(),
    ...(perDay !== undefined && { perDay: { USD: perDay * PART } }),
  })
  const registry = new AgentRegistry()
  for (const agent of agents) registry.add(agent)
  const gateway = createGateway({ agents: registry, store, payments: ledger, ...(meter && { meter: meter as Meter }) })
  const { token, text } = await ledger.tokens.issue({
    tenant: payer.tenant,
    owner: payer.id,
    agents: ['*'],
    currency: 'USD',
    amount: BigInt(thousandths) * PART,
    ttlMs: 3_600_000,
    maxDepth: 1,
    source: 'outside:USD',
  })
  const account = await ledger.accounts.get(payer.tenant, `token:${token.id}`)
  const open = (more: { duplex?: boolean; persist?: boolean; agent?: string } = {}) => {
    const { duplex = true, persist = false, agent = agents[0]?.name ?? '' } = more
    const payment = { scheme: 'token', token: text }
    const config = { modalities: ['text'] }
    return gateway.open({ transport: 'test', agent, principal: payer, config, duplex, persist, onDetach: 'continue', payment })
  }
  return {
    ledger,
    gateway,
    store,
    token,
    text,
    account,
    open,
    /** What the token has, and what of it is locked, in thousandths. */
    money: () => ({ left: Number(account.balance / PART), locked: Number(account.locked) / Number(PART) }),
    /** Asks, and waits for the end of the response. */
    async say(more: Parameters<typeof open>[0] = {}): Promise<ServerEvent> {
      const session = await open(more)
      const reader = session.read()
      await session.send({ type: 'response.create', event_id: crypto.randomUUID() })
      for await (const batch of reader) {
        for (const { event } of batch) if (/^response\.(done|error|cancelled)$/.test(event.type)) return event
      }
      throw new Error('There was no end')
    },
  }
}

/** Something to wait for, and who lets it go on. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open: () => void = () => undefined
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open: () => open() }
}

export function isLock(found: Authorisation | Refusal): found is Authorisation {
  return !('refused' in found)
}
