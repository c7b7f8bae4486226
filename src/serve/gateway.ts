import { serverIdentity } from '../auth/own-identity.ts'
import { responseSigner, type Signs } from '../auth/response-signer.ts'
import { StoredRevocations } from '../auth/revocations.ts'
import { storedSigner } from '../auth/signer.ts'
import { checkKey } from '../core/durable/check-key.ts'
import { AgentRegistry } from '../core/engine/agent-registry.ts'
import { createGateway } from '../core/engine/gateway.ts'
import type { CoreLimits } from '../core/basics/limits.ts'
import { clocksOf, timeOrderedIds } from '../core/basics/time.ts'
import type { Access, Principal } from '../core/ports/access.ts'
import type { AgentPort } from '../core/ports/agent.ts'
import type { Blobs } from '../core/ports/blobs.ts'
import type { ModelTable } from '../core/ports/models.ts'
import type { Payments } from '../core/ports/payments.ts'
import type { Logger } from '../core/ports/transport.ts'
import { redactedLog } from '../core/secrets/redaction.ts'
import { Secrets, secretsOf } from '../core/secrets/secrets.ts'
import { Ledger } from '../payments/ledger.ts'
import { methodsOf } from '../payments/methods.ts'
import { amountsIn, checkSettings, isPayments, type PaymentSettings } from '../payments/settings.ts'
import { Live } from '../server/live.ts'
import { Metrics } from '../server/metrics.ts'
import { guardedHttp } from '../server/node/guarded-http.ts'
import { nodeHttp } from '../server/node/http-client.ts'
import { explainStart, openBlobs, openData } from './data.ts'
import { identityControl } from './identity-control.ts'
import { serveControl } from './storage/control.ts'
import { storageOf } from './storage/index.ts'

/** The bytes that a memory store keeps unless `storedBytes` is set. The oldest sessions go first. */
const MEMORY_BYTES = 512 * 1024 * 1024
/** Connections to one host for agents, tools and payments: each long answer of a remote agent holds one. */
const AGENT_CONNECTIONS = 256

export interface OpenGatewayOptions {
  readonly agents: readonly AgentPort[]
  /** The names that the agents' `protocols` may have. Default: any. */
  readonly protocols?: readonly string[]
  /** The data folder, or `memory`. */
  readonly data: string
  readonly log: Logger
  /** Texts that must never reach a log or a client, beside those in the environment and those of the agents. */
  readonly secrets?: readonly string[]
  readonly access?: Pick<Access, 'authorize' | 'graceSeconds'> | undefined
  readonly limits?: Partial<CoreLimits> | undefined
  readonly outbound?: { readonly allow?: readonly string[] } | undefined
  readonly blobs?: Blobs
  readonly models?: ModelTable | undefined
  /** Signs access tokens. Default: RS256. */
  readonly tokenAlgorithm?: 'RS256' | 'EdDSA' | undefined
  /** When answers are signed. Default: never. */
  readonly sign?: Signs | undefined
  readonly payments?: Payments | PaymentSettings | undefined
  /** The server's own address, as soon as it is known: tokens and signatures name it. */
  readonly ownUrl?: (() => string | undefined) | undefined
}

/** What this server shows to ledgers elsewhere. */
function paymentSecrets(payments: Payments | PaymentSettings = {}): string[] {
  return isPayments(payments) ? [] : [payments.platform?.token ?? []].flat()
}

/** Opens the data and starts a gateway on it: what every way to serve agents has in common. */
export function openGateway({ data, limits = {}, outbound: rules, blobs = openBlobs(data), ...given }: OpenGatewayOptions) {
  const secrets = new Secrets([
    ...(given.secrets ?? []),
    ...paymentSecrets(given.payments),
    ...secretsOf({ program: { env: process.env } }),
  ])
  const log = redactedLog(given.log, secrets)
  const clocks = clocksOf({})
  const { now } = clocks
  const { ownUrl = () => undefined, payments: asked = {} } = given
  const identity = serverIdentity({ signer: () => signer, url: ownUrl, now })
  const agents = new AgentRegistry({ models: given.models, identity, ...(given.protocols && { protocols: given.protocols }) })
  // A config that is read again brings new agents, and perhaps new keys.
  agents.onChange((name) => secrets.add(agents.get(name)?.secrets ?? []))
  for (const agent of given.agents) agents.add(agent)
  const coreLimits = { ...(data === 'memory' && { storedBytes: MEMORY_BYTES }), ...limits }
  const { store, keys } = openData(data, { log, mostBytes: 2 * (coreLimits.storedBytes ?? MEMORY_BYTES) })
  const signer = storedSigner({
    store,
    keys,
    now,
    // ES256 is what A2A §8.4 signs its example with.
    algorithms: { cards: 'ES256', ...(given.tokenAlgorithm && { tokens: given.tokenAlgorithm }) },
    onError: (error) => log('error', 'A key that is old enough could not be replaced', { error }),
  })
  const isRevoked = (principal: Principal): boolean => revocations.find(principal) !== undefined
  const live = new Live({ now, graceSeconds: given.access?.graceSeconds, isRevoked })
  const revocations = new StoredRevocations({ store, now, ownUrl, cut: (matches, reason) => live.cut(matches, reason) })
  const { access } = given
  const authorize = access && {
    authorize: (...asked: Parameters<Access['authorize']>) => revocations.find(asked[0]) === undefined && access.authorize(...asked),
  }
  if (!isPayments(asked)) checkSettings(asked)
  const perDay = isPayments(asked) ? undefined : amountsIn(asked.perDay ?? {}, 'payments.perDay')
  const closing = new AbortController()
  const own = nodeHttp()
  const guarded = guardedHttp({ ...rules, perHost: AGENT_CONNECTIONS })
  const outbound = guardedHttp(rules)
  // Whoever settles payments is named by the operator, and no caller may hold up the payments of the others there.
  const paying = { ...clocks, store, keys, ownUrl, http: guarded, log, newId: timeOrderedIds(now), closing: closing.signal }
  const methods = isPayments(asked) ? undefined : methodsOf(asked, paying)
  const ledger: Ledger = new Ledger({ ...clocks, store, signer, ownUrl, log, perDay, methods })
  const metrics = new Metrics()
  const http = { request: own.request, guarded }
  const gateway = createGateway({
    agents,
    store,
    access: authorize,
    log,
    meter: metrics,
    http,
    secrets,
    keys,
    payments: isPayments(asked) ? asked : ledger,
    signer: given.sign && responseSigner({ signs: given.sign, ownUrl, signer, now, log }),
    limits: coreLimits,
  })
  metrics.gauges = gateway
  metrics.payments = isPayments(asked) ? undefined : ledger
  if (data !== 'memory') {
    const storage = storageOf({ store, blobs, remove: (tenant, session) => gateway.removeUnused(tenant, session) })
    const control = { storage, identity: identityControl({ signer, revocations, secrets }), ledger }
    const stop = serveControl(data, control, (error) => log('warn', '`uamp store` cannot ask this server', { error }))
    closing.signal.addEventListener('abort', stop, { once: true })
  }
  const started = checkKey(store, keys)
    .then(() => revocations.load())
    .then(() => gateway.start())
    .then(() => ledger.start(closing.signal))
    .then(() => {
      // The first answer need not wait for the key. If it cannot be made now, the first answer tries again.
      if (given.sign === 'always') signer.key('responses').catch(() => undefined)
    })
    .catch((thrown: unknown) => Promise.reject(explainStart(thrown, data)))
  return {
    gateway,
    agents,
    store,
    keys,
    signer,
    ledger,
    revocations,
    live,
    secrets,
    log,
    metrics,
    http,
    outbound,
    /** Aborted when the last client has left. */
    closing: closing.signal,
    /** Resolves when responses that the last run left open are closed. */
    started,
    /** Ends everything. `leave` runs when all logs have ended, and lets clients read the rest of them. */
    async close(graceMs: number, leave?: () => Promise<void>): Promise<void> {
      await gateway.drain(graceMs)
      await gateway.close()
      agents.close()
      await leave?.()
      closing.abort()
      for (const client of [outbound, guarded, own]) client.close()
      await store.close()
    },
  }
}

export type OpenGateway = ReturnType<typeof openGateway>
