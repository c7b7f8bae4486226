import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { plainText } from '../../src/protocol/message.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { client, textOf, type Json } from './responses-wire.ts'

/** Answers a request for a summary with one, and else tells all it was told. */
const historian = defineAgent('m', async function* ({ messages }) {
  const told = messages.map((message) => `${message.role}: ${plainText(message)}`)
  yield text(told.at(-1)?.startsWith('user: Summarize') ? `${told.length - 1} messages` : told.join('\n'))
})

async function started() {
  const { url } = await startServer([historian, demo()], {
    defaultAgent: 'm',
    tokens: { alice: 'alice-0123456789abcdef', bob: 'bob-0123456789abcdef' },
  })
  const as = (token: string) => {
    const api = client(url, { token })
    const post = async (path: string, body: object) => {
      const response = await api.call('POST', path, { body })
      return { status: response.status, body: (await response.json()) as Json }
    }
    return { ...api, post }
  }
  return { alice: as('alice-0123456789abcdef'), bob: as('bob-0123456789abcdef') }
}

verifies('openai-responses.compact', 'a conversation becomes what the user said and a summary, and goes on from them', async () => {
  const { alice, bob } = await started()
  const first = await alice.ask({ input: 'One' })
  const second = await alice.ask({ input: 'Two', previous_response_id: first.body['id'] })
  const { status, body } = await alice.post('/compact', { model: 'm', previous_response_id: second.body['id'], input: 'Three' })
  expect(status).toBe(200)
  expect(body).toMatchObject({ object: 'response.compaction', id: expect.any(String), created_at: expect.any(Number) })
  const output = body['output'] as Json[]
  expect(output.map(({ type, content }) => [type, content?.[0]?.text])).toEqual([
    ['message', 'One'],
    ['message', 'Two'],
    ['message', 'Three'],
    ['compaction', undefined],
  ])
  const next = await alice.ask({ input: [...output, { role: 'user', content: 'Four' }] })
  expect(textOf(next.body)).toBe(
    'user: One\nuser: Two\nuser: Three\nassistant: Summary of the conversation so far:\n5 messages\nuser: Four',
  )
  // It is a request for an answer that nobody keeps.
  expect((await alice.get(body['id'] as string)).status).toBe(404)
  expect((await bob.post('/compact', { model: 'm', previous_response_id: second.body['id'] })).body['error'].code).toBe(
    'previous_response_not_found',
  )
  expect(await alice.post('/compact', { model: 'm' })).toMatchObject({ status: 400, body: { error: { param: 'input' } } })
  expect(await alice.post('/compact', { input: 'One' })).toMatchObject({ status: 400, body: { error: { param: 'model' } } })
  for (const item of body['output'] as object[]) expect(item).toMatchObject({ id: expect.any(String) })
  const forged = await alice.ask({ input: [{ type: 'compaction', encrypted_content: 'bm8=' }] })
  expect(forged).toMatchObject({ status: 400, body: { error: { param: 'input[0].encrypted_content' } } })
})

verifies('openai-responses.input-tokens', 'the tokens of a request are counted, with the conversation before it', async () => {
  const { alice, bob } = await started()
  const count = async (body: object) => (await alice.post('/input_tokens', { model: 'm', ...body })).body['input_tokens'] as number
  const few = await count({ input: 'Hello' })
  expect(Number.isInteger(few) && few > 0).toBe(true)
  const many = await count({ input: 'Hello '.repeat(100) })
  expect(many).toBeGreaterThan(few + 100)
  expect(await count({ input: 'Hello', instructions: 'Be kind. '.repeat(50) })).toBeGreaterThan(few + 100)
  const first = await alice.ask({ input: 'Long '.repeat(200) })
  expect(await count({ input: 'Hello', previous_response_id: first.body['id'] })).toBeGreaterThan(few + 400)
  expect(await alice.post('/input_tokens', { input: 5 })).toMatchObject({ status: 400, body: { error: { param: 'input' } } })
  const foreign = await bob.post('/input_tokens', { input: 'x', previous_response_id: first.body['id'] })
  expect(foreign.body['error'].code).toBe('previous_response_not_found')
})

test('an agent that says nothing makes no summary', async () => {
  const silent = defineAgent('m', async function* () {})
  const { url } = await startServer(silent)
  const response = await client(url).call('POST', '/compact', { body: { model: 'm', input: 'One' } })
  expect(response.status).toBe(502)
  expect(await response.json()).toMatchObject({ error: { type: 'server_error', message: 'The agent made no summary' } })
})

test('what the user said is counted while it is gathered, and a caller who has no room for it is refused before the agent is asked', async () => {
  let asked = 0
  const counting = defineAgent('m', async function* () {
    asked++
    yield text('Short')
  })
  const { url } = await startServer(counting, { limits: { heldBytesPerPrincipal: 4_000_000 } })
  const api = client(url)
  const said = 'x'.repeat(800_000)
  const compact = async (previous_response_id: unknown) => {
    const response = await api.call('POST', '/compact', { body: { model: 'm', previous_response_id } })
    return { status: response.status, body: (await response.json()) as Json }
  }
  const first = await api.ask({ input: said })
  // Each lets go of what it held: together they would be too large.
  for (let round = 0; round < 4; round++) expect((await compact(first.body['id'])).status).toBe(200)
  const second = await api.ask({ input: said, previous_response_id: first.body['id'] })
  const third = await api.ask({ input: said, previous_response_id: second.body['id'] })
  expect([third.status, asked]).toEqual([200, 7])
  // The agent gets a copy of the conversation, too: both together do not fit.
  expect(await compact(third.body['id'])).toMatchObject({ status: 503, body: { error: { message: expect.stringContaining('You hold') } } })
  expect(asked).toBe(7)
  expect((await compact(first.body['id'])).status).toBe(200)
})
