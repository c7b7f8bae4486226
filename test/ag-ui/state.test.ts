import { expect } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { state, text } from '../../src/core/agent-kit/drafts.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { joins, messagesOf, refusal, replay, run, user } from './wire.ts'

/** Counts its turns in the state that it shares with its page. */
const counts = defineAgent('counts', async function* (turn) {
  const before = (state.given(turn) ?? {}) as { turns?: number }
  if (before.turns === undefined) yield state.snapshot({ turns: 1, list: [] })
  else yield state.patch([{ op: 'replace', path: '/turns', value: before.turns + 1 }])
  const said = turn.messages.at(-1)?.content
  if (said === 'broken') yield state.patch([{ op: 'remove', path: '/nothing/there' }])
  if (said === 'bomb') {
    const grown = Array.from({ length: 40 }, (_, n) => ({ op: 'copy' as const, from: '', path: `/copy${n}` }))
    yield state.patch(grown)
  }
  yield text(JSON.stringify(before))
})

const input = { threadId: 't' }

async function thread(url: string, query = '?protocolVersion=1.0') {
  const response = await fetch(`${url}/ag-ui/threads/t${query}`)
  const body = await response.text()
  expect(response.status, body).toBe(200)
  expect(response.headers.get('content-type')).toContain('text/event-stream')
  return body.split('\n\n').flatMap((frame) => (frame === '' ? [] : [JSON.parse(frame.slice('data: '.length)) as Record<string, unknown>]))
}

verifies('ag-ui.shared-state', 'what the agent changed is there in the next run, and whoever joins is told it', async () => {
  const { url } = await startServer(counts)
  const first = await run(url, [user('u1')], { input })
  const second = await run(url, [user('u1'), ...messagesOf(first.events), user('u2')], { input })
  expect(second.said).toBe('{"turns":1,"list":[]}')
  expect(second.types).not.toContain('STATE_SNAPSHOT')
  // Official clients have an empty state before they are told another.
  const joined = await run(url, [user('u3')], { input: { ...input, ...joins, state: {}, runId: 'joins' } })
  expect(joined.types.slice(0, 3)).toEqual(['RUN_STARTED', 'STATE_SNAPSHOT', 'MESSAGES_SNAPSHOT'])
  expect(joined.events[1]?.['snapshot']).toEqual({ turns: 2, list: [] })
  expect(joined.said).toBe('{"turns":2,"list":[]}')
  expect((await replay(url, 'joins')).text).toBe(joined.text)
})

verifies('ag-ui.shared-state', 'the state of the page counts before what is kept', async () => {
  const { url } = await startServer(counts)
  const first = await run(url, [user('u1')], { input })
  const next = [user('u1'), ...messagesOf(first.events), user('u2')]
  expect((await run(url, next, { input: { ...input, state: { turns: 7 } } })).said).toBe('{"turns":7}')
  expect((await thread(url)).find(({ type }) => type === 'STATE_SNAPSHOT')?.['snapshot']).toEqual({ turns: 8 })
})

verifies(
  ['ag-ui.shared-state', 'ag-ui.snapshot'],
  'who asks for a thread is told its state and its messages, and can go on with them',
  async () => {
    const { url } = await startServer(counts)
    await run(url, [user('u1')], { input })
    const told = await thread(url)
    expect(told.map(({ type }) => type)).toEqual(['RUN_STARTED', 'STATE_SNAPSHOT', 'MESSAGES_SNAPSHOT', 'RUN_FINISHED'])
    expect(told[1]).toMatchObject({ snapshot: { turns: 1, list: [] } })
    const messages = told[2]?.['messages'] as object[]
    expect(messages).toMatchObject([
      { role: 'user', content: 'u1' },
      { role: 'assistant', content: '{}' },
    ])
    expect(told[3]).toMatchObject({ threadId: 't', outcome: { type: 'success' } })
    expect((await thread(url, ''))[0]).not.toHaveProperty('protocolVersion')
    const next = await run(url, [...messages, user('u2')], { input })
    expect(next.said).toBe('{"turns":1,"list":[]}')
  },
)

verifies('ag-ui.shared-state', 'a patch that does not fit, or grows without end, leaves the state as it was', async () => {
  const { url } = await startServer(counts)
  await run(url, [user('u1')], { input })
  for (const [index, said] of ['broken', 'bomb'].entries()) {
    await run(url, [user(`u-${said}`, said)], { input: { ...input, ...joins } })
    expect((await thread(url))[1]).toMatchObject({ type: 'STATE_SNAPSHOT', snapshot: { turns: index + 2, list: [] } })
  }
})

verifies('ag-ui.shared-state', 'a thread of somebody else is not found', async () => {
  const tokens = { a: 'one-0123456789abcdef', b: 'two-0123456789abcdef' }
  const { url } = await startServer(counts, { tokens })
  await run(url, [user('u1')], { input, headers: { authorization: `Bearer ${tokens.a}` } })
  const asked = (token?: string) =>
    fetch(`${url}/ag-ui/threads/t`, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } })
  expect((await asked(tokens.a)).status).toBe(200)
  expect(await refusal(await asked(tokens.b))).toMatchObject({ status: 404, code: 'not_found' })
  expect((await asked()).status).toBe(401)
})
