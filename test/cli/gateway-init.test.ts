import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ask } from '../openai/support.ts'
import { startUpstream } from '../providers/upstream/index.ts'
import { finished, project, serving } from './run.ts'
import { verifies } from '../support/verifies.ts'

async function chat(url: string, content: string): Promise<string> {
  const { body } = await ask(`${url}/v1/chat/completions`, { messages: [{ role: 'user', content }] })
  return body.choices?.[0].message.content ?? JSON.stringify(body)
}

for (const [provider, path, key] of [
  ['openai', 'openai/v1', 'OPENAI_API_KEY'],
  ['anthropic', 'anthropic', 'ANTHROPIC_API_KEY'],
  ['google', 'google', 'GEMINI_API_KEY'],
  ['fireworks', 'fireworks/v1', 'FIREWORKS_API_KEY'],
  ['deepseek', 'deepseek/v1', 'DEEPSEEK_API_KEY'],
  ['ollama', 'ollama/v1', 'NO_KEY'],
  ['openai-compatible', 'compatible/v1', 'NO_KEY'],
] as const)
  verifies('gateway.init', `in an empty folder, with a key, init and serve give an agent: ${provider}`, async () => {
    const upstream = await startUpstream()
    const cwd = await project()
    const flags = ['--provider', provider, '--model', 'echo', '--base-url', `${upstream.url}/${path}`, '--yes']
    expect(await finished(['init', ...flags], { cwd })).toMatchObject({ code: 0, stderr: '' })
    const { url } = await serving([], { cwd, env: { [key]: 'a-fake-key', UAMP_DATA: 'memory' } })
    expect(await chat(url, 'Say this again')).toContain('Say this again')
  })

verifies('gateway.one-word', 'the same config works with another provider by another word', async () => {
  const upstream = await startUpstream()
  const cwd = await project()
  await finished(['init', '--provider', 'openai', '--model', 'echo', '--base-url', `${upstream.url}/openai/v1`, '--yes'], { cwd })
  const config = await readFile(join(cwd, 'uamp.config.yaml'), 'utf8')
  const other = await project({ 'uamp.config.yaml': config.replaceAll('openai', 'anthropic') })
  const { url } = await serving([], { cwd: other, env: { ANTHROPIC_API_KEY: 'a-fake-key', UAMP_DATA: 'memory' } })
  expect(await chat(url, 'Hello')).toContain('Hello')
  expect(upstream.requests.at(-1)).toMatchObject({ vendor: 'anthropic' })
})

verifies('gateway.asked', 'asks for what is not given, and again where the answer is none', async () => {
  const cwd = await project()
  const { code, stdout } = await finished(['init'], { cwd, input: 'opnai\ndeepseek\n\nmy bot\nbot\nBe "brief": always\n' })
  expect(code).toBe(0)
  expect(stdout).toContain('"opnai" is not one of openai, anthropic')
  expect(stdout).toContain('Model [deepseek-chat]')
  expect(stdout).toContain('export DEEPSEEK_API_KEY=')
  expect(await readFile(join(cwd, 'uamp.config.yaml'), 'utf8')).toMatchInlineSnapshot(`
    "# \`uamp serve\` reads this file, and reads it again whenever it changes.
    agents:
      - name: bot
        # provider/model
        model: deepseek/deepseek-chat
        instructions: 'Be "brief": always'
        # tools: [./tools.ts]
        # mcp: [{ command: npx, args: [-y, some-mcp-server] }]
        # fallbacks: [provider/model]

    # The key comes from DEEPSEEK_API_KEY. Another variable: providers.deepseek.apiKey: \${VARIABLE}
    "
  `)
})

test('suggests the provider that there is a key for', async () => {
  const { stdout } = await finished(['init', '--yes'], { cwd: await project(), env: { ANTHROPIC_API_KEY: 'k' } })
  expect(stdout).toContain('assistant is claude-sonnet-4-5, by anthropic')
  expect(stdout).not.toContain('export')
})

const REFUSED: readonly [string, string[], RegExp, Record<string, string>?][] = [
  ['a config that is there', ['--yes'], /uamp\.config\.json exists already/, { 'uamp.config.json': '{}' }],
  [
    'another config that is there',
    ['--yes', '--force'],
    /uamp\.config\.ts exists already, and `uamp serve` would read it instead/,
    { 'uamp.config.ts': '' },
  ],
  ['a provider that is none', ['--provider', 'x', '--yes'], /--provider: "x" is not one of openai/],
  ['an address that is none', ['--base-url', 'here', '--yes'], /--base-url: An address begins with http/],
  ['what is not usual', ['--provider', 'fireworks', '--yes'], /Add --model/],
  ['silence', [], /There was no answer: add --yes/],
]

for (const [what, args, message, files = {}] of REFUSED)
  verifies('gateway.careful', `refuses ${what}, and writes nothing over`, async () => {
    const { code, stderr } = await finished(['init', ...args], { cwd: await project(files) })
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(message) })
  })

verifies('gateway.careful', '--force writes over its own', async () => {
  const cwd = await project({ 'uamp.config.yaml': 'old' })
  expect(await finished(['init', '--yes', '--force'], { cwd })).toMatchObject({ code: 0 })
  expect(await readFile(join(cwd, 'uamp.config.yaml'), 'utf8')).toContain('model: openai/gpt-5-mini')
})
