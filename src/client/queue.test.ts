import { expect, test } from 'vitest'
import type { ServerEvent } from '../protocol/events.ts'
import { EventQueue } from './queue.ts'

const event = (n: number): ServerEvent => ({ type: 'pong', event_id: String(n) })

async function ids(queue: AsyncIterable<ServerEvent>): Promise<number[]> {
  const seen: number[] = []
  for await (const { event_id } of queue) seen.push(Number(event_id))
  return seen
}

test('gives in order what was pushed before and after it was asked', async () => {
  const queue = new EventQueue()
  queue.push(event(1), 10)
  const seen = ids(queue)
  await Promise.resolve()
  queue.push(event(2), 10)
  queue.push(event(3), 10)
  queue.end()
  expect(await seen).toEqual([1, 2, 3])
  expect(queue.size).toBe(0)
})

test('counts what waits, over many thousand events', async () => {
  const queue = new EventQueue()
  for (let n = 0; n < 5000; n++) queue.push(event(n), 2)
  expect(queue.size).toBe(10_000)
  queue.end()
  expect(await ids(queue)).toEqual(Array.from({ length: 5000 }, (_, n) => n))
  expect(queue.size).toBe(0)
})

test('an error comes after what was queued, and once', async () => {
  const queue = new EventQueue()
  queue.push(event(1), 1)
  queue.end(new Error('lost'))
  queue.push(event(2), 1)
  expect(await queue.next()).toMatchObject({ value: { event_id: '1' } })
  await expect(queue.next()).rejects.toThrow('lost')
  expect(await queue.next()).toEqual({ value: undefined, done: true })
})

test('parallel requests are served in order', async () => {
  const queue = new EventQueue()
  const pulls = [queue.next(), queue.next(), queue.next()]
  queue.push(event(1), 1)
  queue.push(event(2), 1)
  queue.end()
  expect((await Promise.all(pulls)).map(({ value }) => value?.event_id)).toEqual(['1', '2', undefined])
})

test('a reader that leaves frees everything and says so', async () => {
  let left = 0
  const queue = new EventQueue(() => left++)
  queue.push(event(1), 5)
  await queue.return()
  queue.push(event(2), 5)
  expect({ left, size: queue.size, next: await queue.next() }).toEqual({ left: 1, size: 0, next: { value: undefined, done: true } })
})
