import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { isRecord, recordsIn } from '../../protocol/json.ts'
import { addUsage, type Usage } from '../../protocol/usage.ts'
import { formatAmount, parseAmount } from '../basics/money.ts'
import { ratesOf } from '../basics/price.ts'
import type { AgentPort, Said, Turn } from '../ports/agent.ts'
import type { AgentPrice, ChargeRequest, FreeQuota } from '../ports/payments.ts'

/** Locked before an agent runs that is paid by usage. */
const RESERVE = '0.01'
/** Characters of a token, to estimate what an agent said that was stopped before it could tell. */
const PER_TOKEN = 4

/** A turn that knows of free calls. */
type PaidTurn = Turn & { takeFree?(free: FreeQuota): Promise<boolean> }

/** An agent that is paid: whoever asks pays before it runs, and for what it uses. */
export function priced(agent: AgentPort, price: AgentPrice): AgentPort {
  return { name: agent.name, capabilities: agent.capabilities, run: (turn) => paidRun(agent, price, turn) }
}

async function* paidRun(agent: AgentPort, price: AgentPrice, turn: PaidTurn): AsyncGenerator<Said, void> {
  if (price.free && (await turn.takeFree?.(price.free))) return yield* agent.run(turn)
  const { currency = 'USD', call, reserve = RESERVE } = price
  const rates = ratesOf(price)
  if (call !== undefined) await turn.charge({ amount: call, currency, key: 'price.call', reason: `One answer of ${agent.name}` })
  if (!rates.perUse) return yield* agent.run(turn)
  const held = await turn.charge({ amount: reserve, currency, key: 'price.reserve', reason: `What an answer of ${agent.name} uses` })
  held.settle('0')
  let usage: Usage | undefined
  let [charged, steps, letters] = [0n, 0, 0]
  try {
    for await (const said of agent.run(turn)) {
      const draft: Draft | undefined = typeof said === 'string' ? undefined : said
      if (draft?.type === 'usage.delta') {
        usage = addUsage(usage, draft.delta)
        const due = rates.cost(usage) - charged
        letters = 0
        if (due > 0n) {
          charged += due
          const reason = `What an answer of ${agent.name} uses`
          await turn.charge({ amount: formatAmount(due), currency, key: `price.use#${++steps}`, reason })
        }
        yield { ...draft, delta: { ...draft.delta, cost: { total_cost: Number(formatAmount(due > 0n ? due : 0n)), currency } } }
        continue
      }
      letters += lettersIn(said)
      yield said
    }
  } finally {
    // A reader who leaves before the agent could tell what it used pays for what was said.
    if (turn.signal.aborted && letters > 0) {
      const guess = rates.cost({ output_tokens: Math.ceil(letters / PER_TOKEN) })
      held.settle(formatAmount(guess))
    }
  }
}

function lettersIn(said: Said): number {
  if (typeof said === 'string') return said.length
  return said.type === 'response.delta' && said.delta.type === 'text' ? said.delta.text.length : 0
}

/** The amount that a thrown `payment_required` names: such an agent is run again once it is paid. */
export function wantsPayment(thrown: unknown): ChargeRequest | undefined {
  if (!(thrown instanceof UampError) || thrown.code !== 'payment_required') return undefined
  const details = thrown.details ?? {}
  const wanted = parseAmount(details['amount']) === undefined ? recordsIn(details['accepts'])[0] : details
  if (!isRecord(wanted) || parseAmount(wanted['amount']) === undefined) return undefined
  const { amount, currency } = wanted
  return { amount: amount as string, ...(typeof currency === 'string' && { currency }), reason: thrown.message, key: 'thrown' }
}
