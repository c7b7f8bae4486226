import type { Batch, Reader } from '../ports/session.ts'

/** Passes each batch of a reader to `take`, one after the other, until the reader ends. */
export async function eachBatch(reader: Reader, take: (batch: Batch) => Promise<void>): Promise<void> {
  const batches = reader[Symbol.asyncIterator]()
  while (await step(batches, take));
}

/** A call of its own for each batch, because a loop would keep the last batch in memory while it waits for the next. */
async function step(batches: AsyncIterator<Batch>, take: (batch: Batch) => Promise<void>): Promise<boolean> {
  const { value, done } = await batches.next()
  if (done) return false
  await take(value)
  return true
}
