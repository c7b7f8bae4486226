import { expect, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { startServer } from '../support/server.ts'
import { OmniaClient } from './omnia-client.ts'

const MIB = 1024 * 1024

/** `done` says the text twice, and each character takes six in JSON: that is more than one text of V8 holds. */
const escaped = defineAgent('demo', async function* ({ messages }) {
  if (messages.length > 1) return yield text('short')
  for (let piece = 0; piece < 12; piece++) yield text('\0'.repeat(4 * MIB))
  yield { type: 'response.delta', delta: { type: 'image', image: 'TUFS', format: 'png', content_id: 'i' } }
})

test('an answer that is too large for one message ends in an error, and so it does for who comes back', { timeout: 120_000 }, async () => {
  const { url, logged } = await startServer(escaped)
  const client = await OmniaClient.open(url)
  const error = await client.fails({ type: 'message', session_id: client.sessionId, content: 'go' })
  expect(error).toMatchObject({ code: 'INVALID_MESSAGE', details: { code: 'too_large' } })
  expect(client.heard.filter(({ type }) => type === 'chunk')).toHaveLength(12)
  client.socket.terminate()

  const again = await OmniaClient.open(url, { path: `/omnia?agent=demo&resume=${client.sessionId}` })
  expect((await again.say('go on')).at(-1)).toMatchObject({ type: 'done', content: 'short' })
  expect(logged.filter(({ level }) => level === 'error')).toEqual([])
})
