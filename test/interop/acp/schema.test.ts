import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { chooser } from '../../acp/agents.ts'
import { Client, overStdio, type Heard } from '../../acp/wire.ts'
import { verifies } from '../../support/verifies.ts'

const file = fileURLToPath(new URL('../node_modules/acp24/schema/v1/schema.json', import.meta.url))
const schema = JSON.parse(readFileSync(file, 'utf8')) as {
  $defs: Record<string, { readonly 'x-method'?: string; readonly 'x-side'?: string }>
}
const ajv = new Ajv2020({ strict: false, validateFormats: false, inlineRefs: false })
ajv.addSchema(schema, 'acp')

function mistakes(type: string, value: unknown): unknown {
  const check = ajv.getSchema(`acp#/$defs/${type}`)
  if (!check) throw new Error(`The schema has no ${type}`)
  return check(value) ? null : [type, value, check.errors]
}

/** The root of what the protocol defines holds nothing of ours. */
function strangers(type: string, value: object): string[] {
  const known = Object.keys((schema.$defs[type] as { properties?: object }).properties ?? {})
  return Object.keys(value).filter((key) => !known.includes(key))
}

const COMMANDS = [
  'hello',
  '/tool add {"a":1,"b":2}',
  '/tool slow {"ms":20}',
  '/tool nothing',
  '/think so',
  '/image',
  '/file',
  '/audio 0.1',
  '/video',
  '/approve Go?',
]

verifies(['acp-1.schema', 'acp-1.extensibility'], 'everything that is sent is what the schema says', async () => {
  // The chooser repeats the whole conversation in each answer, quoted: with every prompt it gets four times as long.
  const cases = [
    { agent: demo(), prompts: COMMANDS },
    { agent: chooser, prompts: ['hello'] },
  ]
  for (const { agent, prompts } of cases) {
    const client = await Client.connect(overStdio([agent]), {
      'session/request_permission': () => ({ outcome: { outcome: 'selected', optionId: 'allow' } }),
    })
    const answer = async (type: string, method: string, params: object): Promise<Heard> => {
      const { result } = await client.ask(method, params)
      expect(mistakes(type, result)).toBeNull()
      expect(strangers(type, result as object)).toEqual([])
      return result as Heard
    }
    await answer('InitializeResponse', 'initialize', { protocolVersion: 1, clientCapabilities: {} })
    const { sessionId } = await answer('NewSessionResponse', 'session/new', { cwd: '/work', mcpServers: [] })
    for (const text of prompts) await answer('PromptResponse', 'session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
    await answer('ListSessionsResponse', 'session/list', {})
    if (agent === chooser) {
      await answer('SetSessionConfigOptionResponse', 'session/set_config_option', { sessionId, configId: 'model', value: 'large' })
      await answer('SetSessionModeResponse', 'session/set_mode', { sessionId, modeId: 'code' })
    }
    await answer('LoadSessionResponse', 'session/load', { sessionId, cwd: '/work', mcpServers: [] })
    await answer('ResumeSessionResponse', 'session/resume', { sessionId, cwd: '/work' })
    await answer('CloseSessionResponse', 'session/close', { sessionId })
    await answer('DeleteSessionResponse', 'session/delete', { sessionId })
    const told = client.heard.filter(({ method }) => method !== undefined)
    expect(told.length).toBeGreaterThan(prompts.length)
    for (const { method, params } of told) {
      expect(mistakes(method === 'session/update' ? 'SessionNotification' : 'RequestPermissionRequest', params)).toBeNull()
    }
  }
})
