import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { llmAgent, modelOf } from '../../src/agents/llm/index.ts'
import { mcpSkill } from '../../src/skills/mcp/index.ts'
import { scriptedProvider } from '../../src/testing/scripted-provider.ts'
import { call, said } from '../agents/provider.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket, type Heard } from '../support/wire.ts'

const PROGRAM = fileURLToPath(new URL('node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url))

verifies('mcp.reference', 'the reference server of MCP gives its tools to a model', async () => {
  const skill = await mcpSkill({ name: 'everything', server: { command: process.execPath, args: [PROGRAM, 'stdio'] } })
  onTestFinished(() => skill.close())
  const provider = scriptedProvider([
    [
      call('c1', 'echo', { message: 'hi' }),
      call('c2', 'get-sum', { a: 19, b: 23 }),
      call('c3', 'get-tiny-image', {}),
      call('c4', 'get-sum', {}),
    ],
    [said('done')],
  ])
  const agent = llmAgent({ name: 'bot', model: modelOf(provider, 'm'), skills: [skill] })
  const wire = await overWebSocket((await startServer(agent)).url)
  await wire.open()
  const events = await say(wire, 'go')
  expect(textOf(events)).toBe('done')
  const results = Object.fromEntries(
    events.flatMap((event: Heard) =>
      event['delta']?.type === 'tool_result' ? [[event['delta'].tool_result.call_id, event['delta'].tool_result]] : [],
    ),
  )
  expect(results['c1'].result).toBe('Echo: hi')
  expect(results['c2'].result).toContain('42')
  expect(results['c3'].content_items).toMatchObject([{ type: 'image', format: 'png' }])
  expect(results['c4']).toMatchObject({ is_error: true, result: expect.stringContaining('missing') })
})
