import type { ServerEvent } from '../../protocol/events.ts'
import type { Batch, Reader } from '../ports/session.ts'
import { isEnd, RESPONSE_ENDS } from './response-fold.ts'

/** How long the headers of a streamed HTTP response wait for the first word. */
export const PREFLIGHT_MS = 2_000

const ENDS: ReadonlySet<string> = new Set([...RESPONSE_ENDS, 'session.end'])

/** Events that show nothing to the client: after them, an HTTP status can still report an error. */
const IDLE: ReadonlySet<string> = new Set([
  'session.created',
  'session.updated',
  'capabilities',
  'response.created',
  'progress',
  'usage.delta',
  'rate_limit',
  'payment.accepted',
  'payment.balance',
  'payment.error',
])

/** An event that refuses the whole response: nothing was said before it. */
export type Refused = Extract<ServerEvent, { type: 'response.error' | 'payment.required' }>

/** The batches of one response up to its end. Some of them may be read ahead. */
export class ResponseBatches {
  readonly #iterator: AsyncIterator<Batch, unknown>
  readonly #response: string | undefined
  /** Batches that were read ahead. */
  readonly #held: Batch[] = []
  #next: Promise<IteratorResult<Batch, unknown>> | undefined
  /** True once the end was taken, or the client wants no more. */
  over = false

  /** Without `response`, the next end of any response counts. */
  constructor(reader: Reader, response?: string) {
    this.#response = response
    this.#iterator = reader[Symbol.asyncIterator]()
  }

  /**
   * Reads ahead until the response says something, ends, or the time is up. A protocol over HTTP holds its headers back until then,
   * so that a refusal before the first word has its own status, and is not an error inside a 200.
   */
  async preflight(ms = PREFLIGHT_MS): Promise<Refused | undefined> {
    let timer: ReturnType<typeof setTimeout> | undefined
    let late: Promise<undefined> | undefined
    try {
      for (;;) {
        this.#next = this.#iterator.next()
        late ??= new Promise((resolve) => (timer = setTimeout(resolve, ms, undefined)))
        const step = await Promise.race([this.#next, late])
        if (step === undefined) return undefined
        this.#next = undefined
        if (step.done) return undefined
        this.#held.push(step.value)
        const { said, refused } = beginning(step.value)
        if (said || refused) return refused
      }
    } finally {
      clearTimeout(timer)
    }
  }

  /** The next batch; undefined after the end of the response. */
  async take(): Promise<Batch | undefined> {
    if (this.over) return undefined
    const batch = this.#held.shift() ?? (await this.#read())
    if (batch?.has(ENDS) && this.#endsIn(batch)) this.over = true
    return batch
  }

  #endsIn(batch: Batch): boolean {
    const response = this.#response
    let ends = response === undefined
    batch.pick(ENDS, (event) => {
      ends ||= event.type === 'session.end' || (isEnd(event) && event.response_id === response)
    })
    return ends
  }

  async #read(): Promise<Batch | undefined> {
    const next = this.#next ?? this.#iterator.next()
    this.#next = undefined
    const step = await next
    return step.done ? undefined : step.value
  }
}

function beginning(batch: Batch): { said: boolean; refused: Refused | undefined } {
  let said = false
  let refused: Refused | undefined
  batch.visit({
    text: () => {
      said ||= refused === undefined
    },
    event: (event) => {
      if (said || refused) return
      if (event.type === 'response.error' || event.type === 'payment.required') refused = event
      else if (!IDLE.has(event.type)) said = true
    },
  })
  return { said, refused }
}
