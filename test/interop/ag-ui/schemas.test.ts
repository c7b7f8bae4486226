import { EventSchemas, RunAgentInputSchema } from '@ag-ui/core/schemas'
import { decode } from '@ag-ui/proto'
import * as proto from '@ag-ui/proto'
import { expect } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import { agUi } from '../../../src/transports/ag-ui/index.ts'
import type { AgUiEvent } from '../../../src/transports/ag-ui/events.ts'
import { everything } from '../../ag-ui/agents.ts'
import { post, run } from '../../ag-ui/wire.ts'
import { startServer } from '../../support/server.ts'
import { verifies } from '../../support/verifies.ts'

const SAID = ['Hello', '/think x', '/tool add {"a":1,"b":2}', '/approve y', '/state', '/image', '/audio 0.2', '/progress 2', '/error no']

verifies(['ag-ui.text', 'ag-ui.activity'], 'every event fits the schemas of AG-UI 1.0', async () => {
  const { url } = await startServer([demo(), everything])
  const runs = [...(await Promise.all(SAID.map((text) => run(`${url}/agents/demo`, text)))), await run(`${url}/agents/everything`, 'go')]
  for (const { events } of runs) {
    for (const event of events) expect(EventSchemas.safeParse(event).error?.issues, JSON.stringify(event).slice(0, 300)).toBeUndefined()
  }
})

verifies('ag-ui.proto', 'protobuf is sent to those who name it, and to nobody else', async () => {
  const loaded = async () => proto as unknown as { encode(event: AgUiEvent): Uint8Array }
  const { url } = await startServer(demo(), { transports: [agUi({ proto: loaded })] })
  const ask = (accept: string) => post(url, 'Hello', { headers: { accept } })
  for (const accept of ['*/*', 'text/event-stream, */*;q=0.1', `text/event-stream, ${proto.AGUI_MEDIA_TYPE};q=0.5`]) {
    expect((await ask(accept)).headers.get('content-type'), accept).toMatch(/^text\/event-stream/)
  }
  const response = await ask(`${proto.AGUI_MEDIA_TYPE}, text/event-stream;q=0.9`)
  expect(response.headers.get('content-type')).toBe(proto.AGUI_MEDIA_TYPE)
  const bytes = new Uint8Array(await response.arrayBuffer())
  const types: string[] = []
  for (let at = 0; at < bytes.length;) {
    const length = new DataView(bytes.buffer, at).getUint32(0)
    types.push(decode(bytes.subarray(at + 4, at + 4 + length)).type)
    at += 4 + length
  }
  const words = Array.from({ length: 3 }, () => 'TEXT_MESSAGE_CONTENT')
  expect(types).toEqual(['RUN_STARTED', 'TEXT_MESSAGE_START', ...words, 'TEXT_MESSAGE_END', 'RUN_FINISHED'])
})

verifies('ag-ui.proto', 'without the package everybody gets text', async () => {
  const { url } = await startServer(demo(), { transports: [agUi({ proto: async () => undefined })] })
  const response = await post(url, 'Hello', { headers: { accept: proto.AGUI_MEDIA_TYPE } })
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
  await response.text()
})

verifies('ag-ui.input', 'what the schema of 1.0 accepts is accepted', async () => {
  const { url } = await startServer(defineAgent('quiet', async function* () {}))
  const inputs = [
    { threadId: 't1', runId: 'r', messages: [], tools: [], context: [] },
    { threadId: 't2', runId: 'r', protocolVersion: '1.0', parentRunId: 'x', state: null, messages: [], tools: [], context: [], resume: [] },
    {
      threadId: 't3',
      runId: 'r',
      state: [1],
      forwardedProps: 'anything',
      context: [{ description: 'a', value: 'b' }],
      tools: [{ name: 'a', description: '', metadata: { x: 1 } }],
      messages: [
        { id: '1', role: 'developer', content: 'd' },
        { id: '2', role: 'reasoning', content: 'r', encryptedValue: 'e' },
        { id: '3', role: 'assistant', toolCalls: [{ id: 'c', type: 'function', function: { name: 'a', arguments: '{}' } }] },
        { id: '4', role: 'tool', toolCallId: 'c', content: [{ type: 'text', text: 'x' }], error: 'no' },
        { id: '5', role: 'activity', activityType: 'PLAN', content: {} },
        { id: '6', role: 'user', content: [{ type: 'image', source: { type: 'url', value: 'https://example.com/a.png' } }], metadata: {} },
      ],
    },
  ]
  for (const input of inputs) {
    expect(RunAgentInputSchema.safeParse(input).error, input.threadId).toBeUndefined()
    const response = await fetch(`${url}/ag-ui`, { method: 'POST', body: JSON.stringify(input) })
    expect(response.status, await response.text()).toBe(200)
  }
})
