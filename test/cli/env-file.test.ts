import { mkdir, readdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { verifies } from '../support/verifies.ts'
import { finished, project, serving } from './run.ts'

/** An agent that says what the environment has. */
const AGENT = `import { defineAgent, text } from 'uamp'
export default defineAgent('env', async function* () { yield text(JSON.stringify([process.env.A, process.env.B, process.env.C])) })`

async function said(url: string): Promise<unknown> {
  const body = JSON.stringify({ model: 'env', messages: [{ role: 'user', content: 'hi' }] })
  const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body })
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] }
  return JSON.parse(choices[0]?.message.content ?? '')
}

verifies('gateway.env-file', 'reads .env beside the config, then in the working folder; the real environment wins', async () => {
  const cwd = await project({
    'sub/uamp.config.yaml': 'agents: [./agent.js]\n',
    'sub/agent.js': AGENT,
    'sub/.env': 'A=beside\nB="two words" # a remark\n',
    '.env': 'A=working\nB=working\nC=working\n',
  })
  const plain = await serving(['--config', 'sub/uamp.config.yaml'], { cwd })
  expect(await said(plain.url)).toEqual(['beside', 'two words', 'working'])
  const real = await serving(['sub'], { cwd, env: { UAMP_DATA: 'memory', A: 'real', B: '' } })
  expect(await said(real.url)).toEqual(['real', '', 'working'])
  for (const name of ['sub/agent.js', 'sub/uamp.config.yaml', 'sub']) {
    const { stdout } = await finished(['chat', name, '-q', 'hi'], { cwd, env: { HOME: cwd } })
    expect(JSON.parse(stdout), name).toEqual(['beside', 'two words', 'working'])
  }
})

verifies('gateway.env-file', 'a key, a token and the data folder may come from .env', async () => {
  const cwd = await project({
    'uamp.config.yaml': 'agents:\n  - { name: one, model: openai/gpt-5 }\ntokens: { alice: "${ALICE}" }\n',
    '.env': 'OPENAI_API_KEY=sk-x\nALICE=0123456789abcdef\nUAMP_DATA=kept\n',
  })
  const { url } = await serving([], { cwd, env: {} })
  expect((await fetch(`${url}/v1/models`)).status).toBe(401)
  expect((await fetch(`${url}/v1/models`, { headers: { authorization: 'Bearer 0123456789abcdef' } })).status).toBe(200)
  expect(await readdir(join(cwd, 'kept'))).toContain('uamp.db')
})

test.skipIf(process.platform !== 'linux')('a .env that cannot be read is named', async () => {
  const cwd = await project()
  await symlink('/proc/self/mem', join(cwd, '.env'))
  const { code, stderr } = await finished(['serve', '--port', '0'], { cwd })
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^error: \.env cannot be read: EIO/) })
})

test('a folder called .env, as of a Python environment, is left alone', async () => {
  const cwd = await project({ 'agent.js': AGENT })
  await mkdir(join(cwd, '.env'))
  const { url } = await serving(['agent.js'], { cwd })
  expect(await said(url)).toEqual([null, null, null])
})
