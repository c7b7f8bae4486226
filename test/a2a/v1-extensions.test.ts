import { describe, expect } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { all, BINDINGS, textOf, user } from './v1-wire.ts'

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
