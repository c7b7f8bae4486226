import { expect, test } from 'vitest'
import { UampClientError } from './errors.ts'
import { Outbox } from './outbox.ts'

const ids = (events: readonly { readonly id: string }[]): string[] => events.map(({ id }) => id)
const error = new UampClientError({ code: 'not_found', message: 'no' })

test('sends once, and again after the connection was lost, until acknowledged', async () => {
  const outbox = new Outbox()
  const first = outbox.add({ id: 'a', text: '{}' })
  const second = outbox.add({ id: 'b', text: '{}' })
  expect(ids(outbox.take())).toEqual(['a', 'b'])
  expect(outbox.take()).toEqual([])
  outbox.acknowledge(['a', 'unknown'])
  await first
  const third = outbox.add({ id: 'c', text: '{}' })
  outbox.rewind()
  expect(ids(outbox.take())).toEqual(['b', 'c'])
  outbox.acknowledge(['b', 'c'])
  await Promise.all([second, third])
  outbox.rewind()
  expect(outbox.take()).toEqual([])
})

test('can be taken in groups, by number and by size', () => {
  const outbox = new Outbox()
  for (const [id, length] of [
    ['a', 9],
    ['b', 2],
    ['c', 2],
    ['d', 2],
    ['e', 2],
  ] as const)
    void outbox.add({ id, text: 'x'.repeat(length) })
  const groups = Array.from({ length: 5 }, () => ids(outbox.take({ events: 2, size: 5 })))
  expect(groups).toEqual([['a'], ['b', 'c'], ['d', 'e'], [], []])
})

test('a refusal is told to who sent it, and the event is not sent again', async () => {
  const outbox = new Outbox()
  const sent = outbox.add({ id: 'a', text: '{}' })
  outbox.refuse('a', error)
  outbox.refuse('a', error)
  await expect(sent).rejects.toBe(error)
  outbox.rewind()
  expect(outbox.take()).toEqual([])
})

test('has a limit in events', async () => {
  const outbox = new Outbox()
  for (let n = 0; n < 1024; n++) outbox.add({ id: String(n), text: '{}' }).catch(() => undefined)
  await expect(outbox.add({ id: 'more', text: '{}' })).rejects.toMatchObject({ code: 'overloaded' })
  outbox.acknowledge(['0'])
  void outbox.add({ id: 'more', text: '{}' })
  expect(outbox.take()).toHaveLength(1024)
})

test('has a limit in characters', async () => {
  const outbox = new Outbox()
  void outbox.add({ id: 'a', text: 'x'.repeat(16 * 1024 * 1024) })
  await expect(outbox.add({ id: 'b', text: 'x' })).rejects.toMatchObject({ code: 'overloaded' })
  expect(outbox.largest?.id).toBe('a')
})

test('closed, it rejects what waits and what comes', async () => {
  const outbox = new Outbox()
  const before = outbox.add({ id: 'a', text: '{}' })
  outbox.close(error)
  await expect(before).rejects.toBe(error)
  await expect(outbox.add({ id: 'b', text: '{}' })).rejects.toBe(error)
})
