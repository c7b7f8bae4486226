import { describe, expect, test } from 'vitest'
import type { ServerEvent } from '../protocol/events.ts'
import { UampClientError } from './errors.ts'
import { Line, type Position } from './line.ts'

function line(resume?: Position): Line {
  let n = 0
  return new Line({
    create: {
      type: 'session.create',
      uamp_version: '1.0',
      session: { modalities: ['text'], extensions: { mine: 1, uamp: { theirs: 2 } } },
    },
    newId: () => `id${++n}`,
    resume,
  })
}

const delta = (seq: number): ServerEvent => ({
  type: 'response.delta',
  event_id: `e${seq}`,
  session_id: 's',
  response_id: 'r',
  seq,
  delta: { type: 'text', text: String(seq) },
})

const resumed = (recovered: boolean): ServerEvent => ({
  type: 'session.created',
  event_id: 'c',
  session_id: 's',
  uamp_version: '1.0',
  session: { id: 's', created_at: 0, config: { modalities: ['text'] }, status: 'active' },
  extensions: { uamp: { request: 'x', resume: { recovered } } },
})

async function take(events: AsyncIterator<ServerEvent>, count: number): Promise<(number | undefined)[]> {
  const seqs: (number | undefined)[] = []
  for (let n = 0; n < count; n++) seqs.push(((await events.next()) as IteratorYieldResult<ServerEvent>).value.seq)
  return seqs
}

describe('opening', () => {
  test('says hello with a new id each time, and with its place once it has one', () => {
    const one = line()
    expect(one.hello()).toMatchObject({ event_id: 'id1', session: { extensions: { mine: 1, uamp: { theirs: 2 } } } })
    one.open('s')
    one.receive(delta(7), 100)
    expect(one.hello()).toMatchObject({
      event_id: 'id2',
      session: { extensions: { mine: 1, uamp: { theirs: 2, resume: { session_id: 's', after: 7 } } } },
    })
  })

  test('a resumed session begins where it was left', () => {
    expect(line({ session_id: 's', after: 40 }).hello().session.extensions?.['uamp']).toMatchObject({
      resume: { session_id: 's', after: 40 },
    })
  })

  test('is ready when open, and rejects when it fails before', async () => {
    const one = line()
    one.open('s')
    await one.ready
    const other = line()
    other.fail(new UampClientError({ code: 'not_found', message: 'no' }))
    await expect(other.ready).rejects.toMatchObject({ code: 'not_found' })
  })
})

describe('receiving', () => {
  test('what was seen is dropped; numbers may jump', async () => {
    const one = line()
    const events = one.events()
    for (const seq of [1, 2, 2, 1, 3, 1000, 999, 1001]) one.receive(delta(seq), 1)
    one.close(new UampClientError({ code: 'closed', message: 'x' }))
    expect(await take(events, 5)).toEqual([1, 2, 3, 1000, 1001])
    expect((await events.next()).done).toBe(true)
  })

  test('the first loop gets everything, a later one what comes after', async () => {
    const one = line()
    one.receive(delta(1), 1)
    const first = one.events()
    one.receive(delta(2), 1)
    const second = one.events()
    one.receive(delta(3), 1)
    expect(await take(first, 3)).toEqual([1, 2, 3])
    expect(await take(second, 1)).toEqual([3])
  })

  test('acknowledgements and refusals settle what was sent, and are matched by event id', async () => {
    const one = line()
    one.open('s')
    const events = one.events()
    const good = one.send({ type: 'input.text', text: 'a', event_id: 'good' })
    const bad = one.send({ type: 'tool.result', call_id: 'c', result: '1', event_id: 'bad' })
    one.receive({ type: 'x.ack', event_id: 'k', session_id: 's', event_ids: ['good'] }, 1)
    const error = { code: 'not_found', message: 'no such call', details: { event_id: 'bad' } }
    one.receive({ type: 'session.error', event_id: 'm', session_id: 's', error }, 1)
    await good
    await expect(bad).rejects.toMatchObject({ code: 'not_found', message: 'no such call' })
    // The acknowledgement is not an event of the conversation; the refusal is.
    expect((await events.next()).value?.type).toBe('session.error')
  })

  test('a gap ends every loop with an error, and the session goes on', async () => {
    const one = line()
    const before = one.events()
    one.receive(delta(5), 1)
    one.receive(resumed(false), 1)
    one.receive(delta(91), 1)
    expect(await take(before, 1)).toEqual([5])
    await expect(before.next()).rejects.toMatchObject({ code: 'gap', details: { after: 5 } })
    const after = one.events()
    one.receive(delta(92), 1)
    expect(await take(after, 1)).toEqual([92])
    expect(one.seq).toBe(92)
  })

  test('after a gap numbers may begin anew', async () => {
    const one = line({ session_id: 's', after: 500 })
    one.receive(resumed(false), 1)
    await expect(one.events().next()).rejects.toMatchObject({ code: 'gap' })
    const events = one.events()
    for (const seq of [3, 3, 2, 4]) one.receive(delta(seq), 1)
    expect(await take(events, 2)).toEqual([3, 4])
  })

  test('a gap is told to a loop that begins later, too', async () => {
    const one = line({ session_id: 's', after: 1 })
    one.receive(resumed(false), 1)
    await expect(one.events().next()).rejects.toMatchObject({ code: 'gap', details: { session_id: 's', after: 1 } })
  })

  test('an answer to a reconnect is not passed on', async () => {
    const one = line()
    const events = one.events()
    one.receive(resumed(true), 1)
    one.receive(delta(1), 1)
    expect(await take(events, 1)).toEqual([1])
  })
})

describe('limits', () => {
  const MiB = 1024 * 1024

  test('a reader that is too slow gets what was queued, then slow_consumer with the place to resume from', async () => {
    const one = line({ session_id: 's', after: 0 })
    const slow = one.events()
    const quick = one.events()
    for (let seq = 1; seq <= 10; seq++) {
      one.receive(delta(seq), MiB)
      await quick.next()
    }
    expect(await take(slow, 5)).toEqual([1, 2, 3, 4, 5])
    await expect(slow.next()).rejects.toMatchObject({ code: 'slow_consumer', details: { session_id: 's', after: 5 } })
  })

  test('one event may be larger than the limit; with another before it, its reader is too slow', async () => {
    const one = line({ session_id: 's', after: 0 })
    const events = one.events()
    one.receive(delta(1), 60 * MiB)
    expect(await take(events, 1)).toEqual([1])
    one.receive(delta(2), 1)
    one.receive(delta(3), 60 * MiB)
    expect(await take(events, 2)).toEqual([2, 3])
    await expect(events.next()).rejects.toMatchObject({ code: 'slow_consumer' })
  })

  test('without a reader nothing piles up, and a later loop begins later', async () => {
    const one = line()
    for (let seq = 1; seq <= 10; seq++) one.receive(delta(seq), MiB)
    expect(one.room).toBeUndefined()
    const late = one.events()
    one.receive(delta(11), 1)
    expect(await take(late, 1)).toEqual([11])
  })

  test('a link that can wait is told when, and woken by the reader', async () => {
    const one = line()
    const events = one.events()
    one.receive(delta(1), MiB)
    one.receive(delta(2), MiB)
    expect(one.room).toBeUndefined()
    one.receive(delta(3), MiB)
    const room = one.room
    expect(room).toBeInstanceOf(Promise)
    await take(events, 3)
    await room
    expect(one.room).toBeUndefined()
  })

  test('shed gives up those who are far behind, and no others', async () => {
    const one = line()
    const slow = one.events()
    const quick = one.events()
    for (let seq = 1; seq <= 3; seq++) {
      one.receive(delta(seq), MiB)
      await quick.next()
    }
    one.shed()
    one.receive(delta(4), 1)
    expect(await take(slow, 3)).toEqual([1, 2, 3])
    await expect(slow.next()).rejects.toMatchObject({ code: 'slow_consumer' })
    expect(await take(quick, 1)).toEqual([4])
  })
})

describe('the end', () => {
  test('session.end ends the loops and rejects what waits', async () => {
    const one = line()
    one.open('s')
    const events = one.events()
    const sent = one.send({ type: 'input.text', text: 'a' })
    one.receive({ type: 'session.end', event_id: 'e', session_id: 's', reason: 'idle' }, 1)
    await expect(sent).rejects.toMatchObject({ code: 'closed', message: expect.stringContaining('idle') as string })
    expect((await events.next()).value?.type).toBe('session.end')
    expect((await events.next()).done).toBe(true)
    expect((await one.events().next()).done).toBe(true)
    await one.closed
  })

  test('a failure is thrown in the loops', async () => {
    const one = line()
    const events = one.events()
    one.fail(new UampClientError({ code: 'unreachable', message: 'gone' }))
    await expect(events.next()).rejects.toMatchObject({ code: 'unreachable' })
  })
})
