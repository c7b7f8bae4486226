import { setTimeout as after } from 'node:timers/promises'
import { UampClientError, type EventOf, type ServerEvent, type Session } from '../../client/node.ts'
import type { Console } from './console.ts'
import type { Page } from './page.ts'
import { show } from './show.ts'

export interface ConversationOptions {
  readonly page: Page
  readonly console: Console
  /** The session is resumed, and begins with a replay. */
  readonly resumed: boolean
}

/** A replay comes in one burst. After this much quiet it is over. */
const QUIET_MS = 150

/** Shows every event of a session on the page, whoever caused it. */
export class Conversation {
  /** Resolves when the replay is on the page. */
  readonly caughtUp: Promise<void>
  readonly #session: Session
  readonly #options: ConversationOptions
  #catchUp: () => void = () => undefined
  #replaying: boolean
  /** The running response. */
  #open: string | undefined
  /** A question that the replay left open. */
  #held: EventOf<'x.approval.request'> | undefined
  #asking: AbortController | undefined
  /** Set while our message waits for the end of its answer. */
  #answered: ((well: boolean) => void) | undefined
  #cancelled = false

  constructor(session: Session, options: ConversationOptions) {
    this.#session = session
    this.#options = options
    this.#replaying = options.resumed
    this.caughtUp = new Promise((resolve) => (this.#catchUp = resolve))
  }

  get busy(): boolean {
    return this.#open !== undefined || this.#answered !== undefined
  }

  /** Shows events until the session is over. Rejects if the connection is lost for good. */
  async run(): Promise<void> {
    try {
      for (let again = true; again;) again = await this.#follow()
    } finally {
      this.#over(false)
      this.#catchUp()
    }
  }

  /** Sends a message. Resolves when its answer is over; false if it failed. */
  say(text: string): Promise<boolean> {
    return new Promise((resolve) => {
      this.#answered = resolve
      this.#options.console.busy()
      this.#send(text).catch((error: UampClientError) => this.#refused(error))
    })
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

  notice(text: string): void {
    const { console, page } = this.#options
    console.busy()
    page.note(text)
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
      if (thrown.code === 'gap') this.#over(false)
      return true
    }
  }

  async #send(text: string): Promise<void> {
    await this.#session.send({ type: 'input.text', text })
    if (this.#cancelled) {
      this.#options.page.note('(cancelled)')
      return this.#settle(true)
    }
    await this.#session.send({ type: 'response.create' })
  }

  #refused({ code, message }: UampClientError): void {
    // `run` reports the end of the session.
    if (code === 'closed' || code === 'unreachable') return
    this.#options.page.note(`${code}: ${message}`, 'red')
    this.#settle(false)
  }

  async #see(event: ServerEvent): Promise<void> {
    const { page, console } = this.#options
    if (event.type === 'session.created') {
      if (console.interactive) page.note(`${event.agent ?? 'The agent'} listens. Ctrl-C stops an answer, /exit leaves.`)
      if (!this.#replaying) this.#catchUp()
    }
    if (event.type === 'response.created') {
      this.#open = event.response_id
      console.busy()
    }
    // `#refused` shows refusals of our own events.
    if ('error' in event && event.error.details?.['event_id'] !== undefined) return
    if (!this.#replaying || console.interactive) show(event, page)
    if (event.type === 'x.approval.request') {
      if (this.#replaying) this.#held = event
      else await this.#approve(event)
    }
    if (event.type === 'response.done' || event.type === 'response.cancelled' || event.type === 'response.error') {
      if (event.response_id === this.#open) this.#over(event.type !== 'response.error' && !failed(event))
    }
  }

  /** The replay is over: questions that it left open are really open. */
  async #live(): Promise<void> {
    this.#replaying = false
    if (this.#held) await this.#approve(this.#held)
    if (this.#open === undefined) this.#catchUp()
  }

  async #approve({ approval_id, message }: EventOf<'x.approval.request'>): Promise<void> {
    const { page, console } = this.#options
    this.#held = undefined
    this.#asking = new AbortController()
    page.end()
    const approved = await console.confirm(message, this.#asking.signal)
    this.#asking = undefined
    // The server refuses it if somebody else has answered.
    void this.#session.send({ type: 'x.approval.response', approval_id, approved }).catch(() => undefined)
  }

  /** Called when no response runs any more. */
  #over(well: boolean): void {
    this.#open = this.#held = undefined
    if (!this.#replaying) this.#catchUp()
    this.#settle(well)
  }

  #settle(well: boolean): void {
    const resolve = this.#answered
    this.#answered = undefined
    this.#cancelled = false
    if (!this.busy) this.#options.console.rest()
    resolve?.(well)
  }
}

function failed(event: EventOf<'response.done' | 'response.cancelled'>): boolean {
  return event.type === 'response.done' && event.response.status === 'failed'
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
