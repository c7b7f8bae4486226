import type { Batch, Reader } from '../ports/session.ts'

/** Hands on what a reader yields, one batch after the other, until it ends. */
export async function eachBatch(reader: Reader, take: (batch: Batch) => Promise<void>): Promise<void> {
  const batches = reader[Symbol.asyncIterator]()
  while (await step(batches, take));
}

/** A call of its own for each batch: a loop that waits for the next one would keep the last one alive. */
async function step(batches: AsyncIterator<Batch>, take: (batch: Batch) => Promise<void>): Promise<boolean> {
  const { value, done } = await batches.next()
  if (done) return false
  await take(value)
  return true
}
