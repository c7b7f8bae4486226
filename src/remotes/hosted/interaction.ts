import { weigh } from '../../core/basics/weight.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ServerEvent } from '../../protocol/events.ts'
import type { Hold } from '../../core/ports/session.ts'
import type { Line } from '../../upstream/line.ts'
import { RESUME, TAKEN, WINDOW_EVENTS, WINDOW_LENGTH } from '../../wire/connect.ts'
import { readValue } from '../../wire/server-event.ts'

/** Characters of a whole answer, as for other agents elsewhere. */
const ANSWER = 256 * 1024 * 1024
/** Characters that wait for a slow caller. An agent that knows the window never has so many on the way. */
const WAITING = 8 * WINDOW_LENGTH
/** The agent is told of progress after so much of it. */
const TOLD_EVENTS = WINDOW_EVENTS / 4
const TOLD_LENGTH = WINDOW_LENGTH / 4
/** Answers of a client that the agent has not acknowledged. */
const UNACKNOWLEDGED = 256

/** Where an interaction sends its events, and who is told of its end. */
export interface Way {
  /** True if the agent's end knows our additions: it resumes, and counts. */
  readonly resumes: boolean
  send(texts: readonly string[]): void
  left(interaction: Interaction): void
}

export interface InteractionOptions {
  readonly id: string
  readonly name: string
  readonly way: Way
  readonly input: object
  readonly signal: AbortSignal
  /** Counts what waits for the caller. */
  readonly hold: Hold
  readonly monotonic: () => number
}

/** One request to a hosted agent, under a session id of its own. It outlives the socket that it began on. */
export class Interaction implements Line {
  readonly id: string
  /** The number of the last event that came; 0 before the first. */
  seq = 0
  /** When it was last heard of. */
  heardAt: number
  readonly #options: InteractionOptions
  #input: string | undefined
  #received: (ServerEvent | string)[] = []
  #waiting = 0
  #total = 0
  /** The events that the caller has, and those that the agent was told of. */
  #taken = 0
  #told = 0
  #untold = 0
  readonly #answers = new Map<string, string>()
  #failure: Error | undefined
  #isOver = false
  #wake: () => void = () => undefined

  constructor(options: InteractionOptions) {
    const { id, input, signal, monotonic } = options
    this.id = id
    this.#options = options
    this.#input = JSON.stringify(input)
    this.heardAt = monotonic()
    signal.addEventListener('abort', this.#abort, { once: true })
    if (signal.aborted) this.#abort()
  }

  get way(): Way {
    return this.#options.way
  }

  /** True once the agent has said something. */
  get begun(): boolean {
    return this.#input === undefined
  }

  readonly #abort = (): void => this.fail(this.#options.signal.reason as Error)

  /** Sends what the agent may have missed: the whole request, or where to go on. */
  start(): void {
    const { way } = this.#options
    this.heardAt = this.#options.monotonic()
    const again = this.#input ?? JSON.stringify({ type: RESUME, event_id: this.id, session_id: this.id, after: this.seq })
    way.send([again, ...this.#answers.values()])
  }

  async next(): Promise<readonly (ServerEvent | string)[]> {
    // Whoever asks for more has taken what came before.
    this.#tellTaken()
    while (this.#received.length === 0) {
      if (this.#failure !== undefined) throw this.#failure
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
    const events = this.#received
    this.#received = []
    this.#untold += this.#waiting
    this.#waiting = 0
    this.#options.hold.set(0)
    this.#taken = this.seq
    return events
  }

  send(event: object): Promise<void> {
    const id = crypto.randomUUID()
    const text = JSON.stringify({ event_id: id, ...event, session_id: this.id })
    if (this.#answers.size >= UNACKNOWLEDGED) this.#answers.delete(this.#answers.keys().next().value ?? '')
    if (this.#options.way.resumes) this.#answers.set(id, text)
    this.#options.way.send([text])
    return Promise.resolve()
  }

  close({ over }: { readonly over: boolean }): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#options.signal.removeEventListener('abort', this.#abort)
    this.#options.hold.close()
    this.#failure ??= new UampError('cancelled', 'The line was closed')
    const { way } = this.#options
    const cancel = { type: 'response.cancel', event_id: crypto.randomUUID(), session_id: this.id }
    way.left(this)
    // The other end keeps an answer until it is told that nobody will ask for it again.
    way.send([...(over ? [] : [JSON.stringify(cancel)]), ...(way.resumes ? [farewell(this.id)] : [])])
  }

  fail(reason: Error): void {
    this.#failure ??= reason
    this.#wake()
  }

  /** Ends an answer that cannot go on, because of what the agent did: `sent too much`. It hears so now: the caller may not read for long. */
  refuse(why: string): void {
    this.#received = []
    this.fail(new UampError('provider_error', `The agent "${this.#options.name}" ${why}`))
    this.close({ over: false })
  }

  /** A run of text deltas, of which the first has the number `seq`. Those that came before are left out. */
  takeTexts(seq: unknown, texts: unknown): void {
    if (this.#failure !== undefined) return
    if (!Array.isArray(texts) || typeof seq !== 'number') return this.fail(wrong(this.#options.name))
    let length = 0
    for (let index = Math.max(0, this.seq - seq + 1); index < texts.length; index++) {
      const text: unknown = texts[index]
      if (typeof text !== 'string') return this.fail(wrong(this.#options.name))
      length += weigh(text)
      this.#received.push(text)
    }
    this.seq = Math.max(this.seq, seq + texts.length - 1)
    this.#came(length)
  }

  /** One event as it was parsed. */
  take(value: Readonly<Record<string, unknown>>): void {
    const { seq } = value
    if (this.#failure !== undefined) return
    if (value['type'] === 'x.ack') return this.#acknowledged(value['event_ids'])
    if (typeof seq === 'number') {
      // After a reconnect events may come again.
      if (seq <= this.seq) return
      this.seq = seq
    }
    const length = weigh(value)
    try {
      const event = readValue(value)
      if (!event || event.type === 'ping') return this.#came(length, 0)
      this.#received.push(event)
    } catch (thrown) {
      return this.fail(UampError.from(thrown))
    }
    this.#came(length)
  }

  /** Counts what came, and what of it waits for the caller. */
  #came(length: number, kept = length): void {
    this.#input = undefined
    this.heardAt = this.#options.monotonic()
    this.#waiting += kept
    this.#total += length
    if (this.#total > ANSWER) return this.refuse('sent too much')
    if (this.#waiting > WAITING) return this.refuse('answers faster than its caller reads')
    try {
      this.#options.hold.grow(this.#waiting)
    } catch {
      return this.refuse('answers faster than its callers read')
    }
    this.#wake()
  }

  #acknowledged(ids: unknown): void {
    if (Array.isArray(ids)) for (const id of ids as readonly unknown[]) if (typeof id === 'string') this.#answers.delete(id)
  }

  #tellTaken(): void {
    const { way } = this.#options
    if (!way.resumes || (this.#taken - this.#told < TOLD_EVENTS && this.#untold < TOLD_LENGTH)) return
    this.#told = this.#taken
    this.#untold = 0
    way.send([`{"type":"${TAKEN}","session_id":"${this.id}","seq":${this.#taken}}`])
  }
}

/** Tells an agent's end to forget an interaction, and to cancel it if it runs. */
export function farewell(id: string): string {
  return JSON.stringify({ type: 'session.end', event_id: crypto.randomUUID(), session_id: id })
}

function wrong(name: string): UampError {
  return new UampError('provider_error', `The agent "${name}" sent something that is no event`)
}
