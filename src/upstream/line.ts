import type { Said, Turn } from '../core/ports/agent.ts'
import { isEnd, isQuestion } from '../core/reading/response-fold.ts'
import type { Draft, ServerEvent } from '../protocol/events.ts'
import { ClientAnswers } from './client-answers.ts'
import type { Payer } from './payer.ts'

/** One response of an agent elsewhere that speaks UAMP events: its events come in, answers go out. */
export interface Line<E = ServerEvent | string> {
  /** The next events, all that came together; a text delta may be its bare text. Throws if the line ends before the response does. */
  next(): Promise<readonly E[]>
  /** Rejects with the refusal of the other side, unless it only says that it no longer waits for this answer. */
  send(event: object): Promise<void>
  /** Ends the session. A response that still runs is cancelled there. Nobody waits for this. */
  close(how: { readonly over: boolean }): void
}

/** Whose turn it is, and who pays for it. */
export interface Asking {
  readonly turn: Turn
  readonly payer: Payer
}

/** What the agent says over the line. Its questions are put to the client of the turn. `pass`: an event as it is said here. */
export async function* answered(
  open: () => Line | Promise<Line>,
  { turn, payer }: Asking,
  pass: (event: ServerEvent) => Draft | undefined,
): AsyncGenerator<Said, void> {
  const line = await open()
  const answers = new ClientAnswers(turn, { payer })
  const waiting = new OpenAnswers()
  let over = false
  try {
    for (let next = line.next(); !over;) {
      const events = await waiting.unlessFailed(next)
      let asks = false
      // Questions come last: on a one-way transport the first of them ends the response.
      for (const event of events) {
        if (typeof event === 'string') {
          yield event
          continue
        }
        over ||= isEnd(event)
        const isAsked = isQuestion(event)
        asks ||= isAsked
        const draft = isAsked ? undefined : payer.told(pass(event))
        if (draft) yield draft
      }
      if (over) return
      next = line.next()
      if (!asks) continue
      const questions = events.flatMap((event) => (typeof event !== 'string' && isQuestion(event) ? [event] : []))
      const told = Promise.all(questions.map(async (question) => line.send(await answers.to(question))))
      if (turn.duplex !== false) waiting.add(told)
      // The response ends here with its questions. If the other side ends meanwhile, its words cannot be passed on.
      else await Promise.race([told, next.then((after) => (after.some(isOver) ? undefined : told))])
    }
  } finally {
    line.close({ over })
    await payer.end()
  }
}

function isOver(event: ServerEvent | string): boolean {
  return typeof event !== 'string' && isEnd(event)
}

/** Answers that are on their way while the response goes on. */
class OpenAnswers {
  #count = 0
  #fail: (error: unknown) => void = () => undefined
  readonly #failed = new Promise<never>((_, reject) => (this.#fail = reject))

  constructor() {
    // Awaited only while there are some.
    this.#failed.catch(() => undefined)
  }

  add(answered: Promise<unknown>): void {
    this.#count++
    answered.then(() => this.#count--, this.#fail)
  }

  unlessFailed<T>(promise: Promise<T>): Promise<T> {
    return this.#count === 0 ? promise : Promise.race([promise, this.#failed])
  }
}
