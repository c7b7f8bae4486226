import { expect, test } from 'vitest'
import { defineAgent } from '../core/agent-kit/define-agent.ts'
import { closing } from './planned.ts'

test('an agent with MCP servers lost its secrets, its models and what its server tells it', async () => {
  const told: unknown[] = []
  const agent = {
    ...defineAgent('bot', async function* () {}),
    secrets: ['a-key-of-the-config'],
    abilities: [{ id: 'a', name: 'A', description: '', tags: [] }],
    handoffs: ['other'],
    prepare: (server: object) => void told.push(server),
    capabilitiesOf: async () => undefined,
    onChange: () => () => undefined,
  }
  const [counted] = closing(agent, async () => undefined).agents
  const { secrets, abilities, handoffs } = agent
  expect(counted).toMatchObject({ name: 'bot', secrets, abilities, handoffs })
  for (const method of ['capabilitiesOf', 'onChange'] as const) expect(counted?.[method]).toBeTypeOf('function')
  counted?.prepare?.({})
  expect(told).toEqual([{}])
})
