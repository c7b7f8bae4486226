import { createServer } from 'node:http'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { finished, project, serving, type RunOptions } from './run.ts'

interface Refusal {
  readonly args: readonly string[]
  readonly files?: Readonly<Record<string, string>>
  readonly env?: RunOptions['env']
  readonly input?: string
  /** The reason. */
  readonly why: RegExp
  /** What to type, or to write, next. */
  readonly next: RegExp
  readonly code?: number
}

const BROKEN_JS = `import { defineAgent } from 'uamp'\nexport default defineAgent('x', async function* () {\n  const = 2\n})\n`
const BROKEN_TS = BROKEN_JS.replace('const =', 'const a: =')
const KEYED = 'agents:\n  - { name: one, model: openai/gpt-5 }\n'
/** Node takes itself for another version. */
const OLD_NODE = `--import=data:text/javascript,${encodeURIComponent("Object.defineProperty(process, 'version', { value: 'v18.20.4' })")}`

const REFUSALS: readonly [what: string, refusal: Refusal][] = [
  [
    'an old Node',
    {
      args: ['serve'],
      env: { NODE_OPTIONS: OLD_NODE },
      why: /needs Node 20\.19 or later, and this is v18\.20\.4/,
      next: /`nvm install 20`/,
    },
  ],
  [
    'an old Node, asked for help',
    { args: ['--help'], env: { NODE_OPTIONS: OLD_NODE }, why: /needs Node 20\.19/, next: /`nvm install 20`/ },
  ],
  [
    'a place that takes no folder',
    { args: ['serve', '--port', '0', '--data', '/proc/none'], why: /cannot be (made|written)/, next: /--data/ },
  ],
  [
    'a missing key',
    {
      args: ['serve', '--port', '0'],
      files: { 'uamp.config.yaml': KEYED },
      why: /:2: agents\[0\]\.model needs a key/,
      next: /set OPENAI_API_KEY/,
      code: 2,
    },
  ],
  [
    'JavaScript that does not parse',
    {
      args: ['serve', 'a.js'],
      files: { 'a.js': BROKEN_JS },
      why: /a\.js does not parse: .*a\.js:3/s,
      next: /`npx uamp doctor a\.js` checks it again/,
    },
  ],
  [
    'TypeScript that does not parse',
    {
      args: ['serve', 'a.ts'],
      files: { 'a.ts': BROKEN_TS },
      why: /a\.ts does not parse: .*a\.ts:3/s,
      next: /`npx uamp doctor a\.ts` checks it again/,
    },
  ],
  [
    'a module without an export',
    {
      args: ['serve', 'a.js'],
      files: { 'a.js': '' },
      why: /a\.js exports no agent/,
      next: /End it with one, as in `export default defineAgent/,
    },
  ],
  [
    'a module that throws',
    {
      args: ['serve', 'a.js'],
      files: { 'a.js': `\nthrow new Error('no luck')` },
      why: /a\.js failed while it loaded: no luck \(.*a\.js:2:7\)/,
      next: /UAMP_DEBUG=1 shows all of it/,
    },
  ],
  [
    'a module that throws no error',
    { args: ['serve', 'a.js'], files: { 'a.js': `throw 'bare'` }, why: /a\.js failed while it loaded: bare/, next: /UAMP_DEBUG=1/ },
  ],
  [
    'a module that imports what is not there',
    {
      args: ['serve', 'a.js'],
      files: { 'a.js': `import 'no-such-package'` },
      why: /imports something that does not exist: .*no-such-package/,
      next: /`npm install no-such-package`/,
    },
  ],
  [
    "an agent's name that is none",
    {
      args: ['serve', '--port', '0', 'a.js'],
      files: { 'a.js': `import { defineAgent } from 'uamp'\nexport default defineAgent('a b', async function* () {})` },
      why: /"a b" cannot be an agent's name/,
      next: /use letters/,
    },
  ],
  ['an address that others reach', { args: ['serve', '--port', '0', '--host', '0.0.0.0'], why: /other machines/, next: /--token-file/ }],
  ['an origin that is none', { args: ['serve', '--port', '0', '--origin', 'app'], why: /"app" is not an origin/, next: /https:/ }],
  [
    'a short secret',
    { args: ['serve', '--port', '0', '--token', 'a:short'], why: /has 5 characters, and needs 16/, next: /`openssl rand -hex 16`/ },
  ],
  ['a command that is none', { args: ['sevre'], why: /unknown command 'sevre'/, next: /Did you mean serve\?[^]*`npx uamp --help` lists/ }],
  ['questions without a terminal', { args: ['init'], input: '', why: /There was no answer/, next: /--yes/ }],
  [
    'a conversation with nobody',
    { args: ['chat', 'http://127.0.0.1:1'], input: 'hi\n', why: /127\.0\.0\.1:1/, next: /uamp serve/, code: 4 },
  ],
]

test.each(REFUSALS)('%s is refused with the reason and what to type next, and nothing is left behind', async (_, refusal) => {
  const { args, files = {}, env = {}, input = '', why, next, code = 1 } = refusal
  const cwd = await project(files)
  const before = await readdir(cwd)
  const ended = await finished(args, { cwd, env, input })
  expect(ended.stderr).toMatch(why)
  expect(ended.stderr).toMatch(next)
  expect(ended.stderr).not.toMatch(/^ {4}at /m)
  expect(ended.code).toBe(code)
  expect(await readdir(cwd)).toEqual(before)
})

test('a port that is in use is refused, and no data folder is left behind', async () => {
  const { url } = await serving()
  const cwd = await project()
  const before = await readdir(cwd)
  const { code, stderr } = await finished(['serve', '--port', new URL(url).port], { cwd })
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/Port \d+ is in use: .*--port 0 takes any free port/) })
  expect(await readdir(cwd)).toEqual(before)
})

/** `uamp serve` of a model behind an address, asked once. */
async function asked(baseUrl: string): Promise<{ status: number; message: string; log: string }> {
  const files = {
    'uamp.config.yaml': `agents:\n  - { name: one, model: mine/m }\nproviders: { mine: { baseUrl: "${baseUrl}", apiKey: sk-wrong-key, retries: 0 } }\n`,
  }
  const { url, cli } = await serving([], { cwd: await project(files) })
  const body = JSON.stringify({ model: 'one', messages: [{ role: 'user', content: 'hi' }] })
  const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body })
  const { error } = (await response.json()) as { error: { message: string } }
  expect(cli.output + error.message).not.toContain('sk-wrong-key')
  return { status: response.status, message: error.message, log: cli.output }
}

test('a wrong key is told to the client without it, and the operator can ask the doctor', async () => {
  const server = createServer((_, response) =>
    response.writeHead(401).end('{"error":{"message":"Incorrect API key provided: sk-wrong-key"}}'),
  ).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { status, message } = await asked(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`)
  expect(status).toBeGreaterThanOrEqual(500)
  expect(message).toMatch(/mine/)
})

test('a model that cannot be reached is told to the client', async () => {
  const { status, message } = await asked('http://127.0.0.1:1/v1')
  expect(status).toBeGreaterThanOrEqual(500)
  expect(message).toMatch(/mine cannot be reached/)
})
