import { describe, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { Capabilities } from '../../src/protocol/capabilities.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { BINDINGS, user } from './v1-wire.ts'

const agent = (capabilities: Partial<Capabilities> = {}) =>
  defineAgent(
    'picky',
    async function* () {
      yield text('Taken')
    },
    { capabilities },
  )

const PNG = { raw: 'AAEC', mediaType: 'image/png' }
const CSV = { raw: 'AAEC', mediaType: 'text/csv; charset=utf-8', filename: 'a.csv' }
const DATA = { data: { n: 1 } }
const pngOnly = { modalities: ['text', 'image'], image: { formats: ['png'] } }
const csvOnly = { modalities: ['text', 'file'], file: { supported_mime_types: ['text/*'] } }

interface Row {
  readonly name: string
  readonly capabilities: Partial<Capabilities>
  readonly part: object
  readonly refused?: { readonly type: string; readonly takes: string }
}

const rows: Row[] = [
  { name: 'an image for an agent of text', capabilities: {}, part: PNG, refused: { type: 'image/png', takes: 'text/plain' } },
  { name: 'data for an agent of text', capabilities: {}, part: DATA, refused: { type: 'application/json', takes: 'text/plain' } },
  {
    name: 'a file elsewhere for an agent of text',
    capabilities: {},
    part: { url: 'https://a.example/b.pdf', mediaType: 'application/pdf' },
    refused: { type: 'application/pdf', takes: 'text/plain' },
  },
  {
    name: 'another type of image than the agent tells',
    capabilities: pngOnly,
    part: { ...PNG, mediaType: 'image/webp' },
    refused: { type: 'image/webp', takes: 'text/plain, image/png' },
  },
  { name: 'the type of image that the agent tells', capabilities: pngOnly, part: { ...PNG, mediaType: 'IMAGE/PNG' } },
  {
    name: 'any image, where the agent tells no types',
    capabilities: { modalities: ['text', 'image'] },
    part: { ...PNG, mediaType: 'image/webp' },
  },
  { name: 'a type by its family', capabilities: csvOnly, part: CSV },
  {
    name: 'data, where files are text',
    capabilities: csvOnly,
    part: DATA,
    refused: { type: 'application/json', takes: 'text/plain, text/*' },
  },
  { name: 'text as a file', capabilities: {}, part: { raw: 'AAEC', mediaType: 'text/plain' } },
  { name: 'a file that does not say what it is', capabilities: {}, part: { raw: 'AAEC' } },
  { name: 'text of any type', capabilities: { modalities: ['audio'] }, part: { text: '# Hi', mediaType: 'text/markdown' } },
]

describe.each(BINDINGS)('content over %s', (name, binding) => {
  for (const { name: what, capabilities, part, refused } of rows) {
    verifies('a2a-1.0.content-type', `${what}: ${refused ? 'refused' : 'taken'}`, async () => {
      const { url } = await startServer(agent(capabilities as Partial<Capabilities>))
      const { result, error } = await binding(url).call('SendMessage', { message: user('', { parts: [{ text: 'look' }, part] }) })
      if (!refused) return expect(result?.task.status.state).toBe('TASK_STATE_COMPLETED')
      expect(error).toMatchObject({
        code: name === 'JSON-RPC' ? -32005 : 400,
        reason: 'CONTENT_TYPE_NOT_SUPPORTED',
        message: `This agent does not take ${refused.type}: it takes ${refused.takes}`,
        field: 'message.parts[1]',
      })
      expect((await binding(url).call('ListTasks', {})).result.tasks).toEqual([])
    })
  }

  test('an answer is no content: data goes to a question of an agent that takes text alone', async () => {
    const asking = defineAgent('asking', async function* (turn) {
      const { approved } = await turn.ask('x.approval.request', { message: 'May I?' })
      yield text(approved ? 'Done' : 'Not done')
    })
    const { url } = await startServer(asking)
    const api = binding(url)
    const { task } = (await api.call('SendMessage', { message: user('go') })).result
    const { approval_id } = task.status.message.parts[1].data
    const parts = [{ data: { type: 'x.approval.response', approval_id, approved: true } }]
    const answered = await api.call('SendMessage', { message: user('', { parts, taskId: task.id }) })
    expect(answered.result.task.artifacts[0].parts).toEqual([{ text: 'Done' }])
  })
})

test('earlier generations have the same error', async () => {
  const { url } = await startServer([agent(), demo()])
  const message = {
    kind: 'message',
    messageId: 'm',
    role: 'user',
    parts: [{ kind: 'file', file: { bytes: 'AAEC', mimeType: 'image/png' } }],
  }
  const ask = async (name: string) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: { message } })
    const response = await fetch(`${url}/agents/${name}/a2a`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    return response.json() as Promise<object>
  }
  expect(await ask('picky')).toMatchObject({ error: { code: -32005, data: { reason: 'CONTENT_TYPE_NOT_SUPPORTED' } } })
  expect(await ask('demo')).toMatchObject({ result: { kind: 'task', status: { state: 'completed' } } })
})
