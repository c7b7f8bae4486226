import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { isRecord, recordsIn } from '../../protocol/json.ts'
import { addUsage, type Usage } from '../../protocol/usage.ts'
import { formatAmount, parseAmount } from '../../protocol/money.ts'
import { ratesOf } from '../basics/price.ts'
import type { AgentPort, Said, Turn } from '../ports/agent.ts'
import type { AgentPrice, Charged, ChargeRequest, FreeQuota } from '../ports/payments.ts'
import { withSeconds } from '../reading/audio-seconds.ts'
import type { Output } from '../reading/output.ts'

/** Locked before an agent runs that is paid by usage. */
const RESERVE = '0.01'
/** Characters of a token, to estimate what an agent used that did not tell. English has so many, and other scripts have fewer. */
const PER_TOKEN = 4
/** Charges of one turn that are exact. Those after them are ahead of the usage, so that their number has a bound. */
const EXACT_STEPS = 256

/** What a running turn knows beside what its agent may know. */
interface PaidTurn extends Turn {
  takeFree?(free: FreeQuota): Promise<boolean>
  readonly responseId?: string
  due?(currency: string): bigint
  readonly output?: Pick<Output, 'items'>
}

/** An agent that is paid: whoever asks pays before it runs, and for what it uses. */
export function priced(agent: AgentPort, price: AgentPrice): AgentPort {
  return { name: agent.name, capabilities: agent.capabilities, run: (turn) => paidRun(agent, price, turn) }
}

async function* paidRun(agent: AgentPort, price: AgentPrice, turn: PaidTurn): AsyncGenerator<Said, void> {
  const meter = new Meter(agent.name, price, turn)
  await meter.begin()
  let isOver = false
  try {
    for await (const said of agent.run(turn)) {
      const draft: Draft | undefined = typeof said === 'string' ? undefined : said
      if (draft?.type === 'usage.delta') {
        yield await meter.delta(draft)
      } else if (draft?.type === 'response.done') {
        isOver = true
        yield* meter.done(draft)
      } else {
        meter.heard(said)
        yield said
      }
    }
    if (!isOver) yield* meter.end()
    isOver = true
  } finally {
    // A reader who leaves before the agent could tell what it used pays for what was said.
    if (!isOver) meter.guess()
  }
}

/** Charges for one run of an agent, and writes into its usage what was charged. */
class Meter {
  readonly #name: string
  readonly #price: AgentPrice
  readonly #turn: PaidTurn
  readonly #currency: string
  #rates: ReturnType<typeof ratesOf>
  /** What one answer costs, whatever it uses. */
  #call = 0n
  /** What is set aside for its usage. */
  #ahead = 0n
  #held: Charged | undefined
  /** The response that it is set aside for. */
  #heldFor: string | undefined
  /** What was charged beyond that, and in how many steps. */
  #beyond = 0n
  #steps = 0
  #last: { readonly charged: Charged; readonly from: bigint } | undefined
  /** What all usage so far costs. */
  #due = 0n
  #usage: Usage | undefined
  /** Characters that the agent said since it last told its usage, and when to estimate them again. */
  #letters = 0
  #next = 1
  /** What the running response has told of its cost. */
  #told = { response: undefined as string | undefined, amount: 0n }

  constructor(name: string, price: AgentPrice, turn: PaidTurn) {
    this.#name = name
    this.#price = price
    this.#turn = turn
    this.#currency = price.currency ?? 'USD'
    this.#rates = ratesOf(price)
  }

  /** Asks for everything that is known beforehand in one question. */
  async begin(): Promise<void> {
    const { free, call = '0', reserve = RESERVE } = this.#price
    if (free && (await this.#turn.takeFree?.(free))) {
      this.#rates = ratesOf({})
      return
    }
    this.#call = parseAmount(call) ?? 0n
    if (this.#rates.perUse) this.#ahead = parseAmount(reserve) ?? 0n
    await this.#hold()
  }

  async #hold(): Promise<void> {
    this.#heldFor = this.#turn.responseId
    this.#held = await this.#charge('price', this.#call + this.#ahead, `An answer of ${this.#name}`)
    this.#settle(this.#due)
  }

  /** What an agent says beside its usage. Not every delta is worth a new estimate. */
  heard(said: Said): void {
    if (!this.#rates.perUse) return
    this.#letters += lettersIn(said)
    if (this.#letters >= this.#next) this.guess()
  }

  async delta(draft: Extract<Draft, { type: 'usage.delta' }>): Promise<Draft> {
    await this.#take(addUsage(this.#usage, draft.delta))
    return { ...draft, delta: { ...draft.delta, cost: this.#cost() } }
  }

  async *done(draft: Extract<Draft, { type: 'response.done' }>): AsyncGenerator<Draft, void> {
    const { usage, output } = draft.response
    // Usage that the agent told piece by piece is in its sum as well.
    if (usage) await this.#take(usage)
    else if (this.#letters === 0) for (const item of output) if (item.type === 'text') this.#letters += item.text.length
    yield* this.end()
    if (!usage) return yield draft
    yield { ...draft, response: { ...draft.response, usage: { ...usage, cost: this.#whole() } } }
  }

  /** Charges what the agent has not told, and tells what has not been told of the cost. */
  async *end(): AsyncGenerator<Draft, void> {
    if (this.#rates.perUse && !this.#usage && this.#letters > 0) await this.#take(this.#guessed())
    if (this.#rates.perSecond) await this.#take(this.#withSound())
    const cost = this.#cost()
    if (cost.total_cost !== 0) yield { type: 'usage.delta', delta: { cost } }
  }

  /** Estimates what was said since the agent last told its usage, as far as the reserve goes. */
  guess(): void {
    this.#next = this.#letters + (this.#letters >> 2) + 1
    if (this.#letters === 0 || !this.#rates.perUse) return
    const more = this.#rates.cost(this.#usage ? { output_tokens: tokens(this.#letters) } : this.#guessed())
    this.#settle(this.#due + more)
  }

  #guessed(): Usage {
    const { messages, config } = this.#turn
    const heard = messages.reduce((sum, { content = '' }) => sum + content.length, config.instructions?.length ?? 0)
    return { input_tokens: tokens(heard), output_tokens: tokens(this.#letters) }
  }

  /** The sound that a response heard and said counts, even if its agent does not tell of it. */
  #withSound(): Usage {
    const { messages, output } = this.#turn
    const last = messages.findLastIndex(({ role }) => role === 'assistant')
    return withSeconds(this.#usage, messages.slice(last + 1), output?.items() ?? []) ?? {}
  }

  /** Charges for usage, all of it so far. It never charges less than before: the larger of two reports counts. */
  async #take(usage: Usage): Promise<void> {
    this.#usage = usage
    this.#letters = 0
    this.#next = 1
    if (!this.#rates.perUse) return
    // An answer to a question opened another response. The one before it has settled its part.
    if (this.#held && this.#heldFor !== this.#turn.responseId) await this.#hold()
    const due = this.#rates.cost(usage)
    if (due > this.#due) this.#due = due
    this.#settle(this.#due)
    const covered = this.#ahead + this.#beyond
    if (this.#due <= covered) return
    const missing = this.#due - covered
    const step = this.#steps < EXACT_STEPS || missing > covered / 16n ? missing : covered / 16n
    const charged = await this.#charge(`price.use#${++this.#steps}`, step, `What an answer of ${this.#name} uses`)
    this.#last = { charged, from: covered }
    this.#beyond += step
    this.#settle(this.#due)
  }

  /** The reserve pays first. */
  #settle(due: bigint): void {
    // No more than was charged is taken in any case.
    this.#held?.settle(formatAmount(this.#call + due))
    if (this.#last) this.#last.charged.settle(formatAmount(due > this.#last.from ? due - this.#last.from : 0n))
  }

  #charge(key: string, amount: bigint, reason: string): Promise<Charged> {
    return this.#turn.charge({ amount: formatAmount(amount), currency: this.#currency, key, reason })
  }

  /** What was charged since this was last told, with tools and everything else. */
  #cost(): NonNullable<Usage['cost']> {
    const { responseId } = this.#turn
    if (this.#told.response !== responseId) this.#told = { response: responseId, amount: 0n }
    const due = this.#allDue()
    const more = due - this.#told.amount
    this.#told.amount = due
    return { total_cost: Number(formatAmount(more)), currency: this.#currency }
  }

  #whole(): NonNullable<Usage['cost']> {
    return { total_cost: Number(formatAmount(this.#allDue())), currency: this.#currency }
  }

  #allDue(): bigint {
    return this.#turn.due?.(this.#currency) ?? 0n
  }
}

function tokens(letters: number): number {
  return Math.ceil(letters / PER_TOKEN)
}

function lettersIn(said: Said): number {
  if (typeof said === 'string') return said.length
  if (said.type === 'thinking') return said.content.length
  if (said.type !== 'response.delta') return 0
  const { delta } = said
  if (delta.type === 'text') return delta.text.length
  if (delta.type === 'thinking') return delta.thinking.length
  return delta.type === 'tool_call' ? delta.tool_call.arguments.length : 0
}

/** The amount that a thrown `payment_required` names: such an agent is run again once it is paid. */
export function wantsPayment(thrown: unknown): ChargeRequest | undefined {
  if (!(thrown instanceof UampError) || thrown.code !== 'payment_required') return undefined
  const details = thrown.details ?? {}
  const wanted = parseAmount(details['amount']) === undefined ? recordsIn(details['accepts'])[0] : details
  if (!isRecord(wanted) || parseAmount(wanted['amount']) === undefined) return undefined
  const { amount, currency } = wanted
  // `reason` of the details is a code. That of a way to pay is for people, as the message is.
  const reason = wanted !== details && typeof wanted['reason'] === 'string' ? wanted['reason'] : thrown.message
  return { amount: amount as string, ...(typeof currency === 'string' && { currency }), reason }
}
