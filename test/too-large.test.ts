import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { defineAgent } from '../src/core/agent-kit/define-agent.ts'
import { text } from '../src/core/agent-kit/drafts.ts'
import type { Draft } from '../src/protocol/events.ts'
import { startServer } from './support/server.ts'

/** Stands for what is larger than a text of V8 once it is JSON, which takes seconds and gigabytes to make. The agent's own check passes it. */
function huge(): object {
  let isChecked = false
  return {
    toJSON: () => {
      if (isChecked) throw new RangeError('Invalid string length')
      isChecked = true
    },
  }
}

const agent = defineAgent('huge', async function* () {
  yield text('said')
  yield { type: 'response.delta', delta: { type: 'image', image: 'TUFS', content_id: 'i', huge: huge() } } as unknown as Draft
})

const EVENTS = [{ type: 'session.create' }, { type: 'input.text', text: 'x' }, { type: 'response.create' }]
const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] }
const RUN = { threadId: 't', runId: 'r', protocolVersion: '1.0', messages: [{ id: 'm', role: 'user', content: 'x' }] }

test.each([
  ['/events', EVENTS, '"code":"too_large"'],
  ['/v1/chat/completions', { stream: true, messages: [{ role: 'user', content: 'x' }] }, '"code":"request_too_large"'],
  ['/ag-ui', RUN, '"type":"RUN_ERROR"'],
  ['/a2a', { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: { message } }, 'REQUEST_TOO_LARGE'],
  ['/a2a/rest/message:stream', { message }, 'REQUEST_TOO_LARGE'],
])('a stream of %s ends in its error when something is too large to be told', async (path, body, error) => {
  const { url } = await startServer(agent)
  const headers = { 'content-type': 'application/json', accept: 'text/event-stream', 'a2a-version': '1.0' }
  const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  expect(await response.text()).toContain(error)
})

test('a socket of events tells it before it closes', async () => {
  const { url } = await startServer(agent)
  const socket = new WebSocket(`${url.replace('http', 'ws')}/uamp`)
  const heard: string[] = []
  socket.on('message', (data: Buffer) => heard.push(data.toString()))
  const closed = new Promise<number>((resolve) => socket.once('close', resolve))
  await new Promise((resolve) => socket.once('open', resolve))
  for (const event of EVENTS) socket.send(JSON.stringify(event))
  expect(await closed).toBe(1011)
  expect(JSON.parse(heard.at(-1) ?? '')).toMatchObject({ type: 'session.error', error: { code: 'too_large' } })
})
