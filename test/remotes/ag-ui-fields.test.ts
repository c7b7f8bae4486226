import { expect } from 'vitest'
import { remoteAgUi } from '../../src/remotes/ag-ui/index.ts'
import { messagesOf, run, user } from '../ag-ui/wire.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { peer } from './ag-ui-peer.ts'

const done = { type: 'RUN_FINISHED', outcome: { type: 'success' } }
const words = (messageId: string, delta: string, role = 'assistant') => [
  { type: 'TEXT_MESSAGE_START', messageId, role },
  { type: 'TEXT_MESSAGE_CONTENT', messageId, delta },
  { type: 'TEXT_MESSAGE_END', messageId },
]
const behind = async (url: string) => startServer(remoteAgUi({ name: 'far', url }))

verifies(
  ['ag-ui-remote.roles', 'ag-ui-remote.meta', 'ag-ui-remote.raw-event'],
  'other roles, annotations and raw events reach a page',
  async () => {
    const { url } = await peer([
      ...words('d', 'A note.', 'developer'),
      { type: 'TEXT_MESSAGE_CHUNK', messageId: 's', role: 'system', delta: 'Never' },
      { type: 'TEXT_MESSAGE_CHUNK', messageId: 's', role: 'system', delta: ' mind.' },
      { ...words('m', '')[0], rawEvent: { vendor: 'chunk-1' } },
      ...words('m', 'Hello').slice(1),
      { type: 'META', metaType: 'thumbs_up', payload: { by: 'me' } },
      done,
    ])
    const here = await behind(url)
    const { events, types } = await run(here.url, [user('u1')])
    const roles = new Map(events.flatMap(({ type, messageId, role }) => (type === 'TEXT_MESSAGE_START' ? [[messageId, role]] : [])))
    const said = events.flatMap(({ type, messageId, delta }) => (type === 'TEXT_MESSAGE_CONTENT' ? [[roles.get(messageId), delta]] : []))
    expect(said).toEqual([
      ['developer', 'A note.'],
      ['assistant', 'Hello'],
      ['system', 'Never mind.'],
    ])
    expect(events.find(({ type }) => type === 'CUSTOM')).toMatchObject({ name: 'meta.thumbs_up', value: { by: 'me' } })
    expect(events.find(({ type }) => type === 'RAW')).toMatchObject({ event: { vendor: 'chunk-1' }, source: 'ag-ui' })
    expect(types).not.toContain('META')
  },
)

verifies('ag-ui-remote.encrypted', 'encrypted values of texts and calls go back with the next run', async () => {
  const call = { toolCallId: 'c1', toolCallName: 'look', parentMessageId: 'm' }
  const { url, inputs } = await peer(
    [
      ...words('m', 'Wait.'),
      { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'message', entityId: 'm', encryptedValue: 'why I said it' },
      { type: 'TOOL_CALL_START', ...call },
      { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{}' },
      { type: 'TOOL_CALL_END', toolCallId: 'c1' },
      { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'tool-call', entityId: 'c1', encryptedValue: 'why I looked' },
      { type: 'TOOL_CALL_RESULT', messageId: 't', toolCallId: 'c1', content: 'seen' },
      done,
    ],
    [...words('n', 'Yes'), done],
  )
  const here = await behind(url)
  const input = { threadId: 't' }
  const first = await run(here.url, [user('u1')], { input })
  await run(here.url, [user('u1'), ...messagesOf(first.events), user('u2')], { input })
  expect(inputs[1]?.messages.find(({ role }) => role === 'assistant')).toMatchObject({
    content: 'Wait.',
    encryptedValue: 'why I said it',
    toolCalls: [{ id: 'c1', encryptedValue: 'why I looked' }],
  })
})
