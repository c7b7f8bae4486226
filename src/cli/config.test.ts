import { expect, test } from 'vitest'
import { defineAgent } from '../core/define-agent.ts'
import { parseConfig, withSecrets } from './config.ts'

const agent = defineAgent('one', async function* () {})

test('takes paths and agents', () => {
  const config = { agents: ['./a.ts', agent], port: 0, tokens: { alice: '$ALICE' } }
  expect(parseConfig(config, 'c.json')).toEqual(config)
  expect(parseConfig({ agents: [agent] }, 'c.json').agents[0]).toBe(agent)
})

test.each([
  [undefined, 'must be an object, but is missing'],
  [[], 'must be an object, not an array'],
  [{}, 'agents must be an array, but is missing'],
  [{ agents: [] }, 'agents must name an agent, such as ["./agent.ts"]'],
  [{ agents: [3] }, 'agents.0 must be the path of an agent module, such as "./agent.ts", or an agent made by defineAgent'],
  [{ agents: ['a'], port: 70_000 }, 'port must be a number from 0 to 65535'],
  [{ agents: ['a'], port: '80' }, 'port must be a number from 0 to 65535'],
  [{ agents: ['a'], data: 1 }, 'data must be a string, not a number'],
  [{ agents: ['a'], tokens: { a: 1 } }, 'tokens.a must be the secret, or "$NAME" for what the environment has under NAME'],
  [{ agents: ['a'], prot: 1 }, '"prot" is not known here: there are agents, port, host, data, tokens, origins, defaultAgent'],
])('%j: %s', (config, message) => {
  expect(() => parseConfig(config, 'c.json')).toThrow(`c.json is not a config:\n  ${message}`)
})

test('tells all mistakes at once', () => {
  expect(() => parseConfig({ port: 'x', host: 1 }, 'c.json')).toThrow(/agents .*\n {2}port .*\n {2}host /)
})

test('takes secrets from the environment, and says which is missing', () => {
  const config = parseConfig({ agents: ['a'], tokens: { alice: '$ALICE', bob: 'b$ob' } }, 'c.json')
  expect(withSecrets(config, { ALICE: 'x' }, 'c.json')).toEqual({ alice: 'x', bob: 'b$ob' })
  expect(() => withSecrets(config, {}, 'c.json')).toThrow('c.json: tokens.alice wants ALICE, which the environment lacks: set it')
})
