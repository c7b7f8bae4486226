import { expect, test } from 'vitest'
import { demo } from '../src/agents/demo/index.ts'
import { startServer } from './support/server.ts'
import { isEnd, say, textOf } from './support/talk.ts'
import { overSse, overWebSocket, type Wire } from './support/wire.ts'

const tool = { type: 'function', function: { name: 'lookup', parameters: { type: 'object' } } }

test('200 sessions at once never see each other', { timeout: 60_000 }, async () => {
  const { url } = await startServer(demo())
  const words = Array.from({ length: 200 }, (_, n) => `secret-${n}-${Math.random().toString(36).slice(2)}`)
  // Some share a socket, some have their own, in both bindings.
  const shared = await overWebSocket(url)

  const one = async (word: string, index: number): Promise<void> => {
    const wire: Wire = index % 2 === 0 ? shared : await (index % 4 === 1 ? overWebSocket : overSse)(url)
    const session = await wire.open({ session: { modalities: ['text'], tools: [tool] } })
    const mine = wire.heard
    const ended = (n: number) =>
      expect.poll(() => mine.filter((event) => event['session_id'] === session && isEnd(event)).length, { timeout: 30_000 }).toBe(n)
    const ask = async (text: string): Promise<void> => {
      expect(await wire.send({ type: 'input.text', text, session_id: session })).toBeUndefined()
      expect(await wire.send({ type: 'response.create', session_id: session })).toBeUndefined()
    }
    await ask(`remember ${word}`)
    await ended(1)
    if (index % 3 === 1) {
      await ask('/count 100000 1')
      await expect
        .poll(() => mine.some((event) => event['session_id'] === session && textOf([event]) === ' 5'), { timeout: 30_000 })
        .toBe(true)
      await wire.send({ type: 'response.cancel', session_id: session })
    } else if (index % 3 === 2) {
      await ask(`/tool lookup {"word":"${word}"}`)
      const call = () => mine.find((event) => event.type === 'tool.call' && event['session_id'] === session)
      await expect.poll(call, { timeout: 30_000 }).toBeTruthy()
      await wire.send({ type: 'tool.result', call_id: call()?.['call_id'], result: JSON.stringify({ word }), session_id: session })
    } else {
      await ask(`again ${word}`)
    }
    await ended(2)
    await ask('/history')
    await ended(3)
    const response_id: unknown = mine.findLast((event) => event['session_id'] === session && isEnd(event))?.['response_id']
    const history = textOf(mine.filter((event) => event['response_id'] === response_id))
    expect(history).toContain(word)
    for (const other of words) if (other !== word) expect(history).not.toContain(other)
  }
  await Promise.all(words.map(one))
})

test("another's session is not found, by any way in", async () => {
  const { url } = await startServer(demo(), { tokens: { alice: 'a-secret-0123456789abcdef', bob: 'b-secret-0123456789abcdef' } })
  const alice = await overWebSocket(url, { token: 'a-secret-0123456789abcdef' })
  const session = await alice.open()
  await say(alice, 'mine')

  for (const connect of [overWebSocket, overSse]) {
    const bob = await connect(url, { token: 'b-secret-0123456789abcdef' })
    await expect(bob.follow(session, 0)).rejects.toMatchObject({ refusal: { error: { code: 'not_found' } } })
    await bob.open()
    expect(await bob.send({ type: 'response.cancel', session_id: session })).toMatchObject({ code: 'not_found' })
    expect(await bob.send({ type: 'session.end', session_id: session })).toMatchObject({ code: 'not_found' })
  }
  expect(textOf(await say(alice, 'still mine'))).toBe('You said: still mine')
  const unknown = await overSse(url, { token: 'b-secret-0123456789abcdef' })
  const [theirs, nobodys] = await Promise.all(
    [session, 'sess_none'].map((id) =>
      unknown.follow(id, 0).catch((error: { refusal: { error: { code: string; message: string } } }) => error.refusal.error),
    ),
  )
  expect({ ...(theirs as object), message: '' }).toMatchObject({ ...(nobodys as object), message: '', details: expect.anything() })
})

test('sessions are listed by principal only', async () => {
  const { url, gateway } = await startServer(demo(), { tokens: { alice: 'a-secret-0123456789abcdef', bob: 'b-secret-0123456789abcdef' } })
  const ids: Record<string, string> = {}
  for (const name of ['alice', 'bob']) ids[name] = await (await overWebSocket(url, { token: `${name[0]}-secret-0123456789abcdef` })).open()
  const { items } = await gateway.list({ tenant: 'default', id: 'alice', scopes: ['*'] }, {})
  expect(items).toMatchObject([{ id: ids['alice'], agent: 'demo', updatedAt: expect.any(Number) }])
})
