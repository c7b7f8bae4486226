import { expect, test } from 'vitest'
import { finished, project, serving } from '../cli/run.ts'
import { OmniaClient } from './omnia-client.ts'

const AGENT = { 'agent.js': "import { demo } from 'uamp/agents/demo'\nexport default demo()\n" }
const config = (omnia: string): string => `agents: [./agent.js]\nomnia:\n${omnia}`

test('what Omnia’s clients may do could not be said in a config', async () => {
  const tool = '    - { type: function, function: { name: weather, parameters: { type: object } } }\n'
  const omnia = `  toolMessages: true\n  clientTools:\n${tool}  limits: { messageBytes: 5000 }\n`
  const { url } = await serving([], { cwd: await project({ ...AGENT, 'uamp.config.yaml': config(omnia) }) })
  const client = await OmniaClient.open(url)
  expect(client.heard[0]).toMatchObject({ connected: { capabilities: { max_payload_size: 5000 } } })
  const shown = (await client.say('/tool add {"a":1,"b":2}')).map(({ type }) => type)
  expect(shown.slice(0, 2)).toEqual(['tool_call', 'tool_result'])
  const call = await client.ask({ type: 'message', session_id: client.sessionId, content: '/tool weather {}' }, 'tool_call')
  client.send({ type: 'tool_result', tool_result: { call_id: call['tool_call'].id, result: 'sun' } })
  expect((await client.next('done'))['content']).toBe('weather answered: sun')
})

test.each([
  ['a setting that is none', '  toolMessage: true\n', /:3: omnia\.toolMessage is unknown here/],
  ['a limit that is none', '  limits: { toolAck: 1 }\n', /:3: omnia\.limits\.toolAck is unknown here/],
  ['a limit beyond all timers', '  limits: { toolAckMs: 2592000000 }\n', /:3: omnia\.limits\.toolAckMs must be/],
  ['a limit of nothing', '  limits: { messageBytes: 0 }\n', /:3: omnia\.limits\.messageBytes must be/],
  ['a limit in parts', '  limits: { messageBytes: 1.5 }\n', /:3: omnia\.limits\.messageBytes must be a whole number/],
  ['a tool that is none', '  clientTools: [{ name: x }]\n', /:3: omnia\.clientTools\[0\]\.type must be "function"/],
])('%s is told with its place', async (_, omnia, said) => {
  const { code, stderr } = await finished(['serve'], { cwd: await project({ ...AGENT, 'uamp.config.yaml': config(omnia) }) })
  expect([code, stderr]).toEqual([2, expect.stringMatching(said)])
})
