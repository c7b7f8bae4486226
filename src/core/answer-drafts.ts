import type { Draft } from '../protocol/events.ts'

/** Makes drafts of one answer of one vendor. */
export interface AnswerReader {
  /** Adds to `out` what the data of an event says. Throws where that is a failure. */
  read(data: string, out: Draft[]): void
  /** The answer is complete: that its connection breaks afterwards is nobody's concern. */
  readonly over: boolean
  /** Adds what the answer cost so far, once. */
  usage(out: Draft[]): void
  /** Adds what the end of the stream says. Throws where the answer was cut off. */
  end(out: Draft[]): void
}

/** Events that came together. */
export type EventBatch = readonly { readonly data: string }[]

/** The drafts of an answer. What was said and spent before it failed is told before the failure is. */
export async function* answerDrafts(
  open: () => AsyncIterable<EventBatch> | Promise<AsyncIterable<EventBatch>>,
  reader: AnswerReader,
): AsyncGenerator<Draft, void> {
  const told: Draft[] = []
  try {
    for await (const batch of await open()) {
      for (const { data } of batch) reader.read(data, told)
      for (const draft of told) yield draft
      told.length = 0
    }
  } catch (thrown) {
    if (!reader.over) {
      reader.usage(told)
      for (const draft of told) yield draft
      throw thrown
    }
  }
  try {
    reader.end(told)
  } finally {
    for (const draft of told) yield draft
  }
}

/** An answer that came in one piece, where a stream was asked for. */
export async function* inOnePiece(data: string): AsyncGenerator<EventBatch, void> {
  yield [{ data }]
}
