import { describe, expect } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { mirror } from '../support/agents.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { all, BINDINGS, textOf, user } from './v1-wire.ts'

const TOOLS = 'https://uamp.dev/a2a/tools/v1'
const DOUBLE = { type: 'function', function: { name: 'double', description: 'Twice a number', parameters: { type: 'object' } } }
const WEATHER = 'https://example.com/extensions/weather/v1'
const BADGE = 'https://example.com/extensions/badge/v2'

/** Has two extensions, of which it may need one. */
const extended = (required: boolean) =>
  defineAgent(
    'extended',
    async function* () {
      yield text('Hello')
    },
    {
      capabilities: { extensions: { a2a: { extensions: [{ uri: WEATHER }, { uri: BADGE, required }] } } },
    },
  )

describe.each(BINDINGS)('extensions over %s', (_, binding) => {
  verifies('a2a-1.0.extensions', 'those that the agent has are said to be in use, the others are ignored (§4.6.3)', async () => {
    const { url } = await startServer(extended(false))
    const api = binding(url)
    const asked = { 'a2a-extensions': `https://example.com/unknown, ${BADGE},${WEATHER}` }
    const { headers, result } = await api.call('SendMessage', { message: user('hi') }, asked)
    expect(headers.get('a2a-extensions')?.split(', ').sort()).toEqual([BADGE, WEATHER])
    expect(result.task.status.state).toBe('TASK_STATE_COMPLETED')
    expect((await api.call('SendMessage', { message: user('hi') })).headers.has('a2a-extensions')).toBe(false)
    // The name that 0.3 has for the header.
    const older = await api.call('SendMessage', { message: user('hi') }, { 'x-a2a-extensions': WEATHER })
    expect(older.headers.get('a2a-extensions')).toBe(WEATHER)
  })

  verifies('a2a-1.0.extensions', 'a client that activates the one for tools can declare tools', async () => {
    const { url } = await startServer(mirror)
    const api = binding(url)
    const message = user('hi', { metadata: { [TOOLS]: { tools: [DOUBLE] }, trace: 't' } })
    const seen = async (headers: Record<string, string>) => {
      const { result } = await api.call('SendMessage', { message }, headers)
      return JSON.parse(result.task.artifacts[0].parts[0].text).config
    }
    const active = await seen({ 'a2a-extensions': TOOLS })
    expect(active).toMatchObject({ tools: [DOUBLE], extensions: { a2a: { metadata: { trace: 't' } } } })
    expect(active.extensions.a2a.metadata).not.toHaveProperty([TOOLS])
    const passive = await seen({})
    expect(passive).not.toHaveProperty('tools')
    expect(passive.extensions.a2a.metadata).toEqual(message.metadata)
  })

  verifies('a2a-1.0.extensions', 'tools of another form, and the name of a tool of the agent, are refused', async () => {
    const owner = defineAgent('owner', mirror.run, { capabilities: { tools: { built_in_tools: ['double'] } } })
    const { url } = await startServer([mirror, owner])
    const declare = async (agent: string, tools: unknown) =>
      (
        await binding(`${url}/agents/${agent}`).call(
          'SendMessage',
          { message: user('hi', { metadata: { [TOOLS]: { tools } } }) },
          { 'a2a-extensions': TOOLS },
        )
      ).error
    const at = `message.metadata.${TOOLS}.tools`
    expect(await declare('mirror', 'double')).toMatchObject({ reason: 'INVALID_PARAMS', field: at })
    const nameless = { type: 'function', function: { name: 'a b' } }
    expect(await declare('mirror', [DOUBLE, nameless])).toMatchObject({ reason: 'INVALID_PARAMS', field: `${at}[1].function.name` })
    expect(await declare('mirror', Array(129).fill(DOUBLE))).toMatchObject({ reason: 'INVALID_PARAMS', field: at })
    expect(await declare('owner', [DOUBLE])).toMatchObject({ message: '"double" is a tool of the agent itself: give yours another name' })
  })

  verifies('a2a-1.0.extension-required', 'one that is needed must be declared (§3.3.4)', async () => {
    const { url } = await startServer(extended(true))
    const api = binding(url)
    for (const headers of [{}, { 'a2a-extensions': WEATHER }, { 'a2a-extensions': BADGE.replace('v2', 'v1') }]) {
      expect((await api.call('SendMessage', { message: user('hi') }, headers)).error).toMatchObject({
        reason: 'EXTENSION_SUPPORT_REQUIRED',
      })
    }
    await expect(all(api.stream('SendStreamingMessage', { message: user('hi') }))).rejects.toMatchObject({
      reason: 'EXTENSION_SUPPORT_REQUIRED',
    })
    expect((await api.call('ListTasks', {})).result.totalSize).toBe(0)
    expect(textOf(await all(api.stream('SendStreamingMessage', { message: user('hi') }, { 'a2a-extensions': BADGE })))).toBe('Hello')
  })
})
