import { expect, test } from 'vitest'
import { ask } from '../openai/support.ts'
import { startUpstream } from '../providers/upstream/index.ts'
import { finished, project, serving } from './run.ts'

const AGENT = `import { llmAgent } from 'uamp/agents/llm'

export default llmAgent({ name: 'helper', model: 'openai/echo' })
`
const CONFIG = 'agents:\n  - { name: helper, model: openai/echo }\n'

test.each([
  { name: 'agent.ts', text: AGENT },
  { name: 'uamp.config.yaml', text: CONFIG },
])('a model by its name in $name is asked with the key of .env, at the address of its variable', async ({ name, text }) => {
  const upstream = await startUpstream()
  const cwd = await project({ [name]: text, '.env': `OPENAI_API_KEY=key-of-mine\nOPENAI_BASE_URL=${upstream.url}/openai/v1\n` })
  const { url } = await serving([name], { cwd })
  const { body } = await ask(`${url}/v1/chat/completions`, { model: 'helper', messages: [{ role: 'user', content: 'by name' }] })
  expect(body.choices[0].message.content).toContain('by name')
  expect(upstream.requests[0]?.headers['authorization']).toBe('Bearer key-of-mine')
})

test('without a key, an agent in a file is not served, and every command says which variable to set', async () => {
  const cwd = await project({ 'agent.ts': AGENT })
  const message = 'The agent "helper" cannot answer: The models of openai need a key: set OPENAI_API_KEY (.env is read, too)'
  const served = await finished(['serve', 'agent.ts', '--port', '0'], { cwd })
  expect(served).toEqual({ code: 1, stdout: '', stderr: `error: ${message}\n` })
  const asked = await finished(['chat', 'agent.ts', 'hello'], { cwd })
  expect(asked).toMatchObject({ code: 2, stdout: '', stderr: `error: ${message}\n` })
  const { code, stdout } = await finished(['doctor', 'agent.ts', '--port', '0'], { cwd })
  expect({ code, stdout }).toMatchObject({ code: 1, stdout: expect.stringContaining(message) })
})

test.each([
  { name: 'agent.ts', text: AGENT, code: 1 },
  { name: 'uamp.config.yaml', text: CONFIG, code: 2 },
])('an address that is none is refused for $name, by the name of its variable alone', async ({ name, text, code }) => {
  const cwd = await project({ [name]: text })
  const env = { OPENAI_API_KEY: 'key-of-mine', OPENAI_BASE_URL: 'https://me:hidden@proxy.example/v1' }
  const { stderr, ...rest } = await finished(['serve', name, '--port', '0'], { cwd, env })
  expect({ ...rest, stderr }).toEqual({
    code,
    stdout: '',
    stderr: expect.stringContaining('OPENAI_BASE_URL must not contain a name or a password'),
  })
  expect(stderr).not.toMatch(/hidden|key-of-mine/)
})
