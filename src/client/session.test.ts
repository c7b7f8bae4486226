import { describe, expect, test } from 'vitest'
import type { ServerEvent } from '../protocol/events.ts'
import { UampClientError } from './errors.ts'
import { Line } from './line.ts'
import { Session } from './session.ts'

type Sent = { readonly type: string; readonly event_id: string; readonly response_id?: string }

/** A session whose link is this test: what it sends is seen here, what it receives is said here. */
function open() {
  let n = 0
  const line = new Line({
    create: { type: 'session.create', uamp_version: '1.0', session: { modalities: ['text'] } },
    newId: () => `id${++n}`,
  })
  const sent: Sent[] = []
  let wake: () => void = () => undefined
  line.onSend = () => {
    sent.push(...line.outbox.take().map(({ text }) => JSON.parse(text) as Sent))
    wake()
  }
  line.open('s')
  const until = async (count: number): Promise<Sent> => {
    while (sent.length < count) await new Promise<void>((resolve) => (wake = resolve))
    return sent[count - 1] as Sent
  }
  let seq = 0
  const says = (event: Record<string, unknown>): void =>
    line.receive({ event_id: 'e', session_id: 's', seq: ++seq, ...event } as unknown as ServerEvent, 10)
  const saysText = (id: string, text: string): void => says({ type: 'response.delta', response_id: id, delta: { type: 'text', text } })
  return { session: new Session('s', line, { base: 'http://localhost', fetch }), line, sent, until, says, saysText }
}

async function types(events: AsyncIterable<ServerEvent>): Promise<string[]> {
  const seen: string[] = []
  for await (const { type } of events) seen.push(type)
  return seen
}

describe('ask', () => {
  test('sends the input and the request, and gives the events of that response alone', async () => {
    const { session, sent, until, says, saysText } = open()
    const seen = types(session.ask('hi', { response: { instructions: 'short' } }))
    await until(2)
    expect(sent).toMatchObject([
      { type: 'input.text', text: 'hi', session_id: 's' },
      { type: 'response.create', response: { instructions: 'short' } },
    ])
    saysText('other', 'x')
    says({ type: 'response.created', response_id: 'r' })
    saysText('other', 'x')
    saysText('r', 'hello')
    says({ type: 'pong' })
    says({ type: 'response.done', response_id: 'r', response: { id: 'r', status: 'completed', output: [] } })
    saysText('r', 'too late')
    expect(await seen).toEqual(['response.created', 'response.delta', 'response.done'])
  })

  test('nothing is sent before the first event is asked for', () => {
    const { session, sent } = open()
    session.ask('hi')
    expect(sent).toEqual([])
  })

  test('a response.error is thrown with its code', async () => {
    const { session, until, says } = open()
    const answer = session.say('hi')
    await until(2)
    says({ type: 'response.created', response_id: 'r' })
    says({ type: 'response.error', response_id: 'r', error: { code: 'interrupted', message: 'restarted' } })
    await expect(answer).rejects.toMatchObject({ name: 'UampClientError', code: 'interrupted', message: 'restarted' })
  })

  test('an input that is refused is thrown, though the answer without it comes in the same breath', async () => {
    const { session, until, says, saysText } = open()
    const answer = session.say([
      { type: 'input.text', text: 'What is this?' },
      { type: 'input.image', image: {} as never },
    ])
    const { event_id } = await until(2)
    await until(3)
    says({ type: 'response.error', error: { code: 'invalid_request', message: 'no image', details: { event_id } } })
    says({ type: 'response.created', response_id: 'r' })
    saysText('r', 'You sent nothing')
    says({ type: 'response.done', response_id: 'r', response: { id: 'r', status: 'completed', output: [] } })
    await expect(answer).rejects.toMatchObject({ code: 'invalid_request', message: 'no image' })
  })

  test('the response to an input that was refused is cancelled, and the next one waits for its end', async () => {
    const { session, line, until, says, saysText } = open()
    const answer = session.say({ type: 'input.image', image: {} as never })
    const { event_id } = await until(1)
    await until(2)
    // Over HTTP the refusal is the answer to a request, and no event.
    line.outbox.refuse(event_id, new UampClientError({ code: 'invalid_request', message: 'no image' }))
    await expect(answer).rejects.toMatchObject({ code: 'invalid_request' })
    const next = session.say('hi')
    says({ type: 'response.created', response_id: 'r' })
    expect(await until(3)).toMatchObject({ type: 'response.cancel', response_id: 'r' })
    says({ type: 'response.cancelled', response_id: 'r' })
    expect(await until(4)).toMatchObject({ type: 'input.text', text: 'hi' })
    await until(5)
    says({ type: 'response.created', response_id: 'r2' })
    saysText('r2', 'hello')
    says({ type: 'response.done', response_id: 'r2', response: { id: 'r2', status: 'completed', output: [] } })
    expect(await next).toBe('hello')
  })

  test('a session of a server that is behind, as after data was put back, is gone on with', async () => {
    const { session, line, until, says } = open()
    line.seq = 500
    const resume = { recovered: false, after: 500, head: 2 }
    says({ type: 'session.created', seq: undefined, extensions: { uamp: { resume } } })
    const answer = session.say('hi')
    await until(2)
    says({ type: 'response.created', response_id: 'r', seq: 3 })
    line.receive({ type: 'response.delta', event_id: 'e', response_id: 'r', seq: 4, delta: { type: 'text', text: 'hello' } }, 10)
    says({ type: 'response.done', response_id: 'r', seq: 5, response: { id: 'r', status: 'completed', output: [] } })
    expect(await answer).toBe('hello')
    expect(session.position.after).toBe(5)
  })

  test('a refusal is thrown, also when another response was taken for ours', async () => {
    const { session, until, says } = open()
    const answer = session.say('hi')
    const { event_id } = await until(2)
    says({ type: 'response.created', response_id: 'of-another-client' })
    says({ type: 'response.error', error: { code: 'response_in_progress', message: 'busy', details: { event_id } } })
    await expect(answer).rejects.toMatchObject({ code: 'response_in_progress' })
  })

  test('a second question while the first is answered is refused here', async () => {
    const { session, until, sent } = open()
    session.say('one').catch(() => undefined)
    await until(2)
    await expect(session.say('two')).rejects.toMatchObject({ code: 'response_in_progress' })
    expect(sent).toHaveLength(2)
  })

  test('say joins the text', async () => {
    const { session, until, says, saysText } = open()
    const answer = session.say('hi')
    await until(2)
    says({ type: 'response.created', response_id: 'r' })
    for (const text of ['a', 'b', 'c']) saysText('r', text)
    says({ type: 'response.done', response_id: 'r', response: { id: 'r', status: 'completed', output: [] } })
    expect(await answer).toBe('abc')
  })

  test('several inputs are one message', async () => {
    const { session, until, sent } = open()
    const events = session.ask([
      { type: 'input.text', text: 'what is this?' },
      { type: 'input.image', image: { url: 'https://example.com/a.png' } },
    ])
    void events.next()
    await until(3)
    expect(sent.map(({ type }) => type)).toEqual(['input.text', 'input.image', 'response.create'])
  })
})

describe('stopping', () => {
  test('aborting throws the reason at once and cancels that response; the next question waits for its end', async () => {
    const { session, until, says, sent } = open()
    const stop = new AbortController()
    const answer = session.say('one', { signal: stop.signal })
    await until(2)
    says({ type: 'response.created', response_id: 'r1' })
    stop.abort(new Error('enough'))
    await expect(answer).rejects.toThrow('enough')
    expect(await until(3)).toMatchObject({ type: 'response.cancel', response_id: 'r1' })

    const next = session.say('two')
    await Promise.resolve()
    expect(sent).toHaveLength(3)
    says({ type: 'response.cancelled', response_id: 'r1' })
    await until(5)
    says({ type: 'response.created', response_id: 'r2' })
    says({ type: 'response.done', response_id: 'r2', response: { id: 'r2', status: 'completed', output: [] } })
    expect(await next).toBe('')
  })

  test('a response that has not begun is cancelled when it does', async () => {
    const { session, until, says, sent } = open()
    const stop = new AbortController()
    const answer = session.say('one', { signal: stop.signal })
    await until(2)
    stop.abort()
    await expect(answer).rejects.toMatchObject({ name: 'AbortError' })
    expect(sent).toHaveLength(2)
    says({ type: 'response.created', response_id: 'r1' })
    expect(await until(3)).toMatchObject({ type: 'response.cancel', response_id: 'r1' })
  })

  test('an aborted signal sends nothing', async () => {
    const { session, sent } = open()
    await expect(session.say('one', { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' })
    expect(sent).toEqual([])
  })

  test('leaving the loop cancels', async () => {
    const { session, until, says, saysText } = open()
    const loop = (async () => {
      for await (const event of session.ask('one')) if (event.type === 'response.delta') break
    })()
    await until(2)
    says({ type: 'response.created', response_id: 'r' })
    saysText('r', 'a')
    await loop
    expect(await until(3)).toMatchObject({ type: 'response.cancel', response_id: 'r' })
  })

  test('cancel() lets who asked see the end', async () => {
    const { session, until, says } = open()
    const seen = types(session.ask('one'))
    await until(2)
    says({ type: 'response.created', response_id: 'r' })
    session.cancel().catch(() => undefined)
    expect(await until(3)).toMatchObject({ type: 'response.cancel', response_id: 'r' })
    says({ type: 'response.cancelled', response_id: 'r' })
    expect(await seen).toEqual(['response.created', 'response.cancelled'])
  })

  test('after a gap the question fails, and another may be asked', async () => {
    const { session, line, until, says } = open()
    const answer = session.say('one')
    await until(2)
    says({ type: 'response.created', response_id: 'r' })
    line.receive(
      {
        type: 'session.created',
        event_id: 'c',
        uamp_version: '1.0',
        session: { id: 's', created_at: 0, config: { modalities: ['text'] }, status: 'active' },
        extensions: { uamp: { resume: { recovered: false } } },
      },
      1,
    )
    await expect(answer).rejects.toMatchObject({ code: 'gap' })
    session.say('two').catch(() => undefined)
    expect(await until(4)).toMatchObject({ type: 'response.create' })
  })
})

describe('the end', () => {
  test('end() resolves whether the acknowledgement or the server’s own session.end comes first', async () => {
    const one = open()
    const ended = one.session.end('bye')
    const { event_id } = await one.until(1)
    one.says({ type: 'x.ack', seq: undefined, event_ids: [event_id] })
    await ended
    const other = open()
    const over = other.session.end()
    await other.until(1)
    other.says({ type: 'session.end' })
    await over
    await expect(other.session.send({ type: 'input.text', text: 'x' })).rejects.toMatchObject({ code: 'closed' })
  })

  test('an unfinished answer is told, a loop over the session just ends', async () => {
    const { session, line, until, says } = open()
    const all = types(session)
    const answer = session.say('one')
    await until(2)
    says({ type: 'response.created', response_id: 'r' })
    line.close(new UampClientError({ code: 'closed', message: 'closed' }))
    await expect(answer).rejects.toMatchObject({ code: 'closed' })
    expect(await all).toEqual(['response.created'])
  })
})
