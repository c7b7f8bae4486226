import { setTimeout as after } from 'node:timers/promises'
import { UampClientError, type EventOf, type Input, type ServerEvent, type Session } from '../../client/node.ts'
import { choicesOf } from '../../core/agent-kit/choices.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { uampIn } from '../../protocol/json.ts'
import { addUsage, type Usage } from '../../protocol/usage.ts'
import type { Approvals } from './approvals.ts'
import { isRefusal } from './exit-codes.ts'
import type { Console } from './input/console.ts'
import type { Page } from './page.ts'
import { balanceText, priceText, type ChatPayments } from './payments.ts'
import type { Transcript } from './transcript.ts'

export interface ConversationOptions {
  readonly page: Page
  readonly console: Console
  readonly approvals: Approvals
  readonly payments: ChatPayments
  readonly transcript: Transcript
  /** Shows an event on the page, or prints it. */
  readonly show: (event: ServerEvent) => void
  /** What a response was asked, where somebody else or an earlier run asked it. */
  readonly asked: (response: string) => Promise<string | undefined>
  /** The session is resumed, and begins with a replay. */
  readonly resumed: boolean
}

type Question = EventOf<'x.approval.request' | 'payment.required'>

/** How an answer ended: `refused` if the server or the agent would not give one. */
export type Outcome = 'well' | 'failed' | 'refused'

/** Said where the cost would be. */
export const UNPRICED = 'no price is known for this model, so its cost is not counted; `uamp models` says more'

/** A replay comes in one burst. After this much quiet it is over. */
const QUIET_MS = 150

/** Shows every event of a session on the page, whoever caused it. */
export class Conversation {
  /** Resolves when the replay is on the page. */
  readonly caughtUp: Promise<void>
  /** What the agent can do, as far as it was told. */
  capabilities: Capabilities | undefined
  agent = ''
  /** The usage of all answers. */
  usage: Usage | undefined
  /** A model answered whose price nobody knows, so that the cost is not the whole. */
  unpriced = false
  #chosen: string | undefined
  readonly #session: Session
  readonly #options: ConversationOptions
  #catchUp: () => void = () => undefined
  #replaying: boolean
  /** The running response. */
  #open: string | undefined
  /** A question that the replay left open. */
  #held: Question | undefined
  #asking: AbortController | undefined
  /** Set while our message waits for the end of its answer. */
  #answered: ((outcome: Outcome) => void) | undefined
  #cancelled = false
  #declined = false
  #saidUnpriced = false

  constructor(session: Session, options: ConversationOptions) {
    this.#session = session
    this.#options = options
    this.#replaying = options.resumed
    this.caughtUp = new Promise((resolve) => (this.#catchUp = resolve))
  }

  get id(): string {
    return this.#session.id
  }

  /** The model that answers, of those that the agent lets its clients choose; undefined if an earlier run may have chosen. */
  get model(): string | undefined {
    return this.#chosen ?? (this.#options.resumed ? undefined : choicesOf(this.capabilities).models[0]?.id)
  }

  get busy(): boolean {
    return this.#open !== undefined || this.#answered !== undefined
  }

  /** Shows events until the session is over. Rejects if the connection is lost for good. */
  async run(): Promise<void> {
    // After an error nothing is settled: whoever waits for an answer must not take it for the end of one.
    for (let again = true; again;) again = await this.#follow()
    this.#over('failed')
    this.#catchUp()
  }

  /** Sends a message. Resolves when its answer is over. */
  say(inputs: readonly Input[]): Promise<Outcome> {
    return new Promise((resolve) => {
      this.#answered = resolve
      this.#options.console.busy()
      this.#send(inputs).catch((error: UampClientError) => this.#refused(error))
    })
  }

  /** Chooses one of the agent's models for the answers from now on. */
  async choose(model: string): Promise<void> {
    await this.#session.send({ type: 'session.update', session: { extensions: { uamp: { model } } } })
    this.#chosen = model
  }

  /** False if nothing runs, or it was cancelled already. */
  cancel(): boolean {
    if (!this.busy || this.#cancelled) return false
    this.#cancelled = true
    this.#asking?.abort()
    // The server refuses it if the answer has just ended.
    void this.#session
      .send({ type: 'response.cancel', ...(this.#open !== undefined && { response_id: this.#open }) })
      .catch(() => undefined)
    return true
  }

  /** One that is `grave` is told in quiet mode, too. */
  notice(text: string, grave = false): void {
    const { console, page } = this.#options
    console.busy()
    if (grave) page.error(text)
    else page.note(text)
    if (!this.busy) console.rest()
  }

  /** True if the iteration ended, but the session goes on. */
  async #follow(): Promise<boolean> {
    try {
      for await (const event of withQuiet(this.#session[Symbol.asyncIterator](), this.#replaying)) {
        if (event !== 'quiet') await this.#see(event)
        else await this.#live()
      }
      return false
    } catch (thrown) {
      if (!(thrown instanceof UampClientError) || !['gap', 'slow_consumer'].includes(thrown.code)) throw thrown
      this.notice(`(something is missing here: ${thrown.message})`)
      if (thrown.code === 'gap') this.#over('failed')
      return true
    }
  }

  async #send(inputs: readonly Input[]): Promise<void> {
    for (const input of inputs) await this.#session.send(input)
    if (this.#cancelled) {
      this.#options.page.note('(cancelled)')
      return this.#settle('well')
    }
    await this.#session.send({ type: 'response.create' })
  }

  #refused({ code, message }: UampClientError): void {
    // `run` reports the end of the session.
    if (code === 'closed' || code === 'unreachable') return
    this.#options.page.error(`${code}: ${message}`)
    this.#settle(isRefusal(code) ? 'refused' : 'failed')
  }

  async #see(event: ServerEvent): Promise<void> {
    const { console } = this.#options
    if (event.type === 'session.created') this.#greet(event)
    if (event.type === 'capabilities') this.#learn(event.capabilities)
    if (event.type === 'response.created') await this.#begin(event)
    // `#refused` shows refusals of our own events.
    if ('error' in event && event.error.details?.['event_id'] !== undefined) return
    if (!this.#replaying || console.interactive) this.#options.show(event)
    if (event.type === 'response.delta' && event.delta.type === 'text' && event.delta.refusal) this.#declined = true
    if (event.type === 'x.approval.request' || event.type === 'payment.required') {
      if (this.#replaying) this.#held = event
      else await this.#decide(event)
    }
    if (event.type === 'payment.accepted') this.#held = undefined
    if (event.type === 'payment.balance' && !this.#replaying) this.notice(balanceText(event))
    if (event.type === 'usage.delta' && uampIn(event.extensions)['unpriced'] === true) this.unpriced = true
    if (event.type === 'response.done') this.#keep(event.response)
    if (event.type === 'response.done' || event.type === 'response.cancelled' || event.type === 'response.error') {
      this.#options.payments.ended(event)
      if (event.response_id === this.#open) this.#over(outcomeOf(event, this.#declined))
    }
  }

  #greet({ agent = 'The agent' }: EventOf<'session.created'>): void {
    const { page, console } = this.#options
    this.agent = agent
    console.busy()
    if (console.interactive) page.note(`${agent} listens. /help lists the commands, Ctrl-C stops an answer.`)
    if (!this.#replaying) this.#catchUp()
  }

  async #begin({ response_id }: EventOf<'response.created'>): Promise<void> {
    const { page, console, asked, transcript } = this.#options
    this.#open = response_id
    this.#declined = false
    console.busy()
    if (this.#answered !== undefined || !console.interactive) return
    const text = await asked(response_id)
    if (text === undefined) return
    transcript.add('user', text)
    page.own(text)
  }

  #keep({ output, usage }: EventOf<'response.done'>['response']): void {
    const texts = output.flatMap((item) => (item.type === 'text' ? [item.text] : []))
    this.#options.transcript.add('agent', texts.join(''))
    if (usage) this.usage = addUsage(this.usage, usage)
    // Once for a session: it is the same with every answer.
    if (this.unpriced && !this.#saidUnpriced && this.#options.page.shown) this.#options.page.note(UNPRICED)
    this.#saidUnpriced = this.unpriced
  }

  /** The replay is over: questions that it left open are really open. */
  async #live(): Promise<void> {
    this.#replaying = false
    if (this.#held) await this.#decide(this.#held)
    if (this.#open === undefined) this.#catchUp()
  }

  /** Tells the price of the agent once, and again when it changes. */
  #learn(capabilities: Capabilities): void {
    const before = priceText(this.capabilities)
    this.capabilities = capabilities
    const price = priceText(capabilities)
    if (price !== undefined && price !== before && this.#options.console.interactive) this.notice(`Price: ${price}`)
  }

  async #decide(question: Question): Promise<void> {
    const { page, approvals, payments } = this.#options
    this.#held = undefined
    this.#asking = new AbortController()
    const { signal } = this.#asking
    page.end()
    const answer = await (question.type === 'payment.required' ? payments.decide(question, signal) : approvals.decide(question, signal))
    this.#asking = undefined
    // The server refuses it if somebody else has answered.
    void this.#session.send(answer).catch(() => undefined)
  }

  /** Called when no response runs any more. */
  #over(outcome: Outcome): void {
    this.#open = this.#held = undefined
    if (!this.#replaying) this.#catchUp()
    this.#settle(outcome)
  }

  #settle(outcome: Outcome): void {
    const resolve = this.#answered
    this.#answered = undefined
    this.#cancelled = false
    if (!this.busy && !this.#replaying) this.#options.console.rest()
    resolve?.(outcome)
  }
}

function outcomeOf(event: EventOf<'response.done' | 'response.cancelled' | 'response.error'>, declined: boolean): Outcome {
  if (event.type === 'response.error') return isRefusal(event.error.code) ? 'refused' : 'failed'
  if (event.type === 'response.done' && event.response.status === 'failed') return 'failed'
  return declined ? 'refused' : 'well'
}

/** The events, with one `quiet` mark after the first pause. */
async function* withQuiet(events: AsyncIterator<ServerEvent>, mark: boolean): AsyncGenerator<ServerEvent | 'quiet', void> {
  let loud = mark
  let next = events.next()
  for (;;) {
    const result = loud ? await Promise.race([next, after(QUIET_MS, 'quiet' as const)]) : await next
    if (result === 'quiet') {
      loud = false
      yield result
    } else if (result.done) return
    else {
      yield result.value
      next = events.next()
    }
  }
}
