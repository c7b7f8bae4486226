import { createServer } from 'node:http'
import { once } from 'node:events'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { checkClock, checkNode } from '../../src/cli/doctor/machine.ts'
import { verifies } from '../support/verifies.ts'
import { finished, project, serving } from './run.ts'

interface Check {
  readonly name: string
  readonly state: string
  readonly found: string
  readonly fix?: string
}

/** A provider that lists its models to those who have the key. */
async function provider(status = 200, models: readonly string[] = ['m']): Promise<string> {
  const server = createServer((request, response) => {
    const known = request.headers.authorization === 'Bearer sk-right-key' || request.headers.authorization === undefined
    response.writeHead(known ? status : 401, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ data: models.map((id) => ({ id })) }))
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const config = (baseUrl: string) =>
  `agents:\n  - { name: one, model: mine/m }\nproviders:\n  mine: { baseUrl: "${baseUrl}/v1", apiKey: "\${MY_KEY}" }\nport: 0\n`

async function doctor(cwd: string, args: readonly string[] = [], env: Record<string, string> = {}) {
  const before = await readdir(cwd)
  const { code, stdout, stderr } = await finished(['doctor', '--json', ...args], { cwd, env })
  expect(stderr).toBe('')
  expect(await readdir(cwd)).toEqual(before)
  const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: readonly Check[] }
  expect(code).toBe(ok ? 0 : 1)
  return { ok, checks, wrong: checks.filter(({ state }) => state === 'wrong') }
}

verifies('doctor.healthy', 'everything that works has a line, no secret is shown, and the exit code is 0', async () => {
  const cwd = await project({ 'uamp.config.yaml': config(await provider()), '.env': 'MY_KEY=sk-right-key\n' })
  const { code, stdout } = await finished(['doctor'], { cwd })
  expect(stdout.trim().split('\n')).toEqual([
    expect.stringMatching(/^ok {4}node {4}v\d+/),
    'ok    config  uamp.config.yaml has no mistakes',
    'ok    keys    MY_KEY is set',
    'ok    models  mine (m) can be reached',
    'ok    data    .uamp will be made',
    expect.stringMatching(/^ok {4}space {3}\d+ [GT]B free$/),
    'ok    port    any free port',
    expect.stringMatching(/^ok {4}clock {3}.* UTC, as elsewhere$/),
  ])
  expect(stdout).not.toContain('sk-right-key')
  expect(code).toBe(0)
})

verifies(
  'doctor.wrong',
  'a mistake in the config, a missing key, a wrong key and a model that is not there are told with the fix',
  async () => {
    const broken = await project({ 'uamp.config.yaml': config('http://127.0.0.1:1').replace('port', 'prot') })
    expect((await doctor(broken, ['--port', '0'])).wrong).toEqual([
      { name: 'config', state: 'wrong', found: expect.stringMatching(/:4: providers\.mine\.apiKey needs MY_KEY/) },
      { name: 'config', state: 'wrong', found: 'uamp.config.yaml:5: prot is unknown here: did you mean "port"?' },
      { name: 'keys', state: 'wrong', found: 'MY_KEY is not set', fix: '`export MY_KEY=…`, or write MY_KEY=… into .env' },
      {
        name: 'models',
        state: 'wrong',
        found: expect.stringMatching(/^mine \(m\) cannot be reached at http:\/\/127\.0\.0\.1:1/),
        fix: expect.stringContaining('providers.mine.baseUrl'),
      },
    ])
    const cwd = await project({ 'uamp.config.yaml': config(await provider()) })
    const refused = await doctor(cwd, [], { MY_KEY: 'sk-wrong-key' })
    expect(refused.wrong).toEqual([
      { name: 'models', state: 'wrong', found: 'mine (m) refuses the key (401)', fix: expect.stringContaining('providers.mine.apiKey') },
    ])
    expect(JSON.stringify(refused)).not.toContain('sk-wrong-key')
    const named = config(await provider()).replaceAll('mine', 'openai')
    for (const [text, where] of [
      [named, 'providers.openai.apiKey'],
      [named.replace('apiKey: "${MY_KEY}"', 'apiKeyEnv: MY_KEY'), 'MY_KEY'],
    ] as const) {
      const { wrong } = await doctor(await project({ 'uamp.config.yaml': text }), [], { MY_KEY: 'sk-wrong-key' })
      expect(wrong).toMatchObject([{ fix: `check ${where}, and that the key is still valid` }])
    }
  },
)

verifies('doctor.wrong', 'a model that ollama has not got is named with the command that gets it', async () => {
  const url = await provider(200, ['llama3.2:latest'])
  const file = (model: string) =>
    `agents:\n  - { name: one, model: ollama/${model} }\nproviders: { ollama: { baseUrl: "${url}/v1" } }\nport: 0\n`
  expect((await doctor(await project({ 'uamp.config.yaml': file('llama3.2') }))).ok).toBe(true)
  expect((await doctor(await project({ 'uamp.config.yaml': file('qwen3') }))).wrong).toMatchObject([
    { found: 'ollama does not have qwen3', fix: '`ollama pull qwen3` gets it' },
  ])
})

verifies('doctor.wrong', 'a server that hangs is given up after five seconds', async () => {
  const server = createServer(() => undefined).listen(0, '127.0.0.1')
  onTestFinished(() => (server.closeAllConnections(), void server.close()))
  await once(server, 'listening')
  const cwd = await project({ 'uamp.config.yaml': config(`http://127.0.0.1:${(server.address() as AddressInfo).port}`) })
  expect((await doctor(cwd, [], { MY_KEY: 'sk-right-key' })).wrong).toMatchObject([
    { found: expect.stringContaining('no answer within 5 s') },
  ])
})

verifies('doctor.wrong', 'a port of another program, and a data folder that is none or damaged', async () => {
  const other = await provider(404)
  const cwd = await project({ file: '', 'uamp.config.yaml': '', 'damaged/uamp.db': 'x'.repeat(200) })
  const { wrong } = await doctor(cwd, ['--port', new URL(other).port, '--data', 'file'])
  expect(wrong).toMatchObject([
    { name: 'config', found: expect.stringMatching(/must be an object/) },
    { name: 'data', found: 'file is not a folder', fix: expect.stringContaining('--data') },
    { name: 'port', found: expect.stringMatching(/is in use by another program$/), fix: expect.stringContaining('--port') },
  ])
  expect((await doctor(cwd, ['--port', '0', '--data', 'damaged'])).wrong).toMatchObject([
    {},
    { name: 'data', found: expect.stringMatching(/damaged or not a database of uamp/) },
  ])
})

verifies('doctor.healthy', 'a server that runs keeps neither its port nor its folder from being healthy', async () => {
  const cwd = await project()
  const { url, cli } = await serving(['--data', 'd'], { cwd })
  const running = await doctor(cwd, ['--port', new URL(url).port, '--data', 'd'])
  expect(running.wrong).toEqual([])
  expect(running.checks.map(({ found }) => found)).toEqual(
    expect.arrayContaining(['d is in use by a server that runs', expect.stringMatching(/is used by a server of uamp, which answers/)]),
  )
  cli.signal('SIGTERM')
  await cli.exit()
  const stopped = await doctor(cwd, ['--port', '0', '--data', 'd'])
  expect(stopped.checks).toContainEqual({ name: 'data', state: 'ok', found: 'd opens, and can be written' })
  const again = await serving(['--data', 'd'], { cwd })
  expect((await fetch(`${again.url}/ready`)).status).toBe(200)
})

test('a database of a newer version is refused', async () => {
  const cwd = await project()
  await mkdir(join(cwd, 'newer'))
  const header = Buffer.alloc(4096)
  header.write('SQLite format 3\0', 'latin1')
  header.writeUInt32BE(99, 60)
  header.writeUInt32BE(0x75616d70, 68)
  await writeFile(join(cwd, 'newer/uamp.db'), header)
  const { wrong } = await doctor(cwd, ['--port', '0', '--data', 'newer'])
  expect(wrong).toMatchObject([
    { name: 'data', found: 'newer was written by a newer version of uamp', fix: expect.stringMatching(/^update uamp/) },
  ])
})

test('old versions of Node and clocks that are off are told', () => {
  expect(checkNode('v18.20.4')).toMatchObject({ state: 'wrong', found: expect.stringContaining('needs Node 20.19 or later') })
  expect(checkNode('v20.18.3').state).toBe('wrong')
  expect([checkNode('v20.19.0'), checkNode('v22.0.0'), checkNode('v24.1.0')].map(({ state }) => state)).toEqual(['ok', 'ok', 'ok'])
  expect(checkClock([], Date.parse('1970-01-01')).state).toBe('wrong')
  expect(checkClock([Date.now() + 3_600_000]).state).toBe('note')
  expect(checkClock([Date.now()]).state).toBe('ok')
})
