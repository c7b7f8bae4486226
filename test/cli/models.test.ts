import { once } from 'node:events'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ask } from '../openai/support.ts'
import { startUpstream } from '../providers/upstream/index.ts'
import { finished, project, serving } from './run.ts'
import { Terminal } from './terminal.ts'

const AGENT = `import { llmAgent } from 'uamp/agents/llm'

export default llmAgent({ name: 'helper', model: 'openai/echo' })
`
const TABLE = JSON.stringify({
  models: { 'openai/echo': { input: 1_000, output: 2_000, contextWindow: 5_000, maxOutput: 700 }, 'acme/big': { input: 1, output: 2 } },
})

interface Place {
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/** A project, and a home of its own, so that no test finds the table of another. */
async function place(files: Readonly<Record<string, string>> = {}): Promise<Place> {
  const cwd = await project(files)
  await mkdir(join(cwd, 'home'))
  const upstream = await startUpstream()
  const keys = { OPENAI_API_KEY: 'key-of-mine', OPENAI_BASE_URL: `${upstream.url}/openai/v1` }
  return { cwd, env: { HOME: join(cwd, 'home'), USERPROFILE: join(cwd, 'home'), ...keys } }
}

/** The cost of an answer of `uamp serve`. */
async function cost({ cwd, env }: Place, file: string): Promise<unknown> {
  const { url, cli } = await serving([file], { cwd, env: { UAMP_DATA: 'memory', ...env } })
  const { body } = await ask(`${url}/v1/chat/completions`, { model: 'helper', messages: [{ role: 'user', content: 'hello' }] })
  await cli.signalUntilExit('SIGTERM')
  return body.usage.cost?.total_cost
}

test('what is known of a model is shown by its name, by a part of it, and by that of a version', async () => {
  const at = await place()
  const shown = async (name: string) => (await finished(['models', name], at)).stdout
  expect(await shown('openai/gpt-5-2025-08-07')).toBe(
    'openai/gpt-5-2025-08-07  $1.25 in, $0.125 cached, $10 out for a million tokens; 400,000 tokens, answers of up to 128,000\n',
  )
  expect(await shown('gemini/gemini-2.5-pro')).toMatch(
    /^google\/gemini-2\.5-pro {2}\$1\.25 in.*; 1,048,576 tokens, answers of up to 65,536\n$/,
  )
  expect((await shown('gpt-4.1-')).trim().split('\n')).toEqual([
    expect.stringMatching(/^openai\/gpt-4\.1-mini {2}\$0\.4 in/),
    expect.stringMatching(/^openai\/gpt-4\.1-nano {2}\$0\.1 in/),
  ])
  expect(await shown('mistral/codestral')).toMatch(/ in, .*out for a million tokens; 256,000 tokens\n$/)
})

test.each([
  ['opnai/gpt-5', /^No price is known for "opnai\/gpt-5": did you mean "openai\/gpt-5"\?\n`uamp models update`/],
  ['ollama/llama3.2', /^No price is known for "ollama\/llama3\.2"\n`uamp models update`/],
  ['openai/gpt-5-zeta', /^No price is known for "openai\/gpt-5-zeta".*\nIt takes 400,000 tokens, answers of up to 128,000\.\n/],
])('that nobody knows a price of %s is said', async (name, text) => {
  expect(await finished(['models', name], await place())).toEqual({ code: 1, stdout: expect.stringMatching(text), stderr: '' })
})

test('without a name it is said how many there are, and from where', async () => {
  const { stdout } = await finished(['models'], await place())
  expect(stdout).toMatch(/^Prices and limits of \d{3} models, from this version of uamp, of \d{4}-\d\d-\d\d:\nopenai \d+, anthropic \d+, /)
})

const MCP = `import { createInterface } from 'node:readline'
const answers = { initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'm', version: '1' } }, 'tools/list': { tools: [] } }
createInterface(process.stdin).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method] ?? {} }))
})
`

test.each([
  { name: 'agent.ts', files: { 'agent.ts': AGENT } },
  {
    name: 'uamp.config.yaml',
    files: {
      'uamp.config.yaml': 'agents:\n  - { name: helper, model: openai/echo, mcp: [{ command: node, args: [mcp.mjs] }] }\n',
      'mcp.mjs': MCP,
    },
  },
])('a table from a file is used by later runs of $name, until a broken one is in its place', async ({ name, files }) => {
  const at = await place({ ...files, 'table.json': TABLE })
  expect(await cost(at, name)).toBeUndefined()
  const { code, stdout } = await finished(['models', 'update', 'table.json'], at)
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringMatching(
      /^2 models from table\.json: 2 are new, 0 have another price\.\nThey are kept in .*models\.json, and used by/,
    ),
  })
  expect(await readdir(join(at.cwd, 'home/.uamp'))).toEqual(['models.json'])
  expect(await cost(at, name)).toBeGreaterThan(0)
  expect((await finished(['models', 'openai/echo'], at)).stdout).toBe(
    'openai/echo  $1000 in, $2000 out for a million tokens; 5,000 tokens, answers of up to 700\n',
  )
  expect((await finished(['models'], at)).stdout).toMatch(/ from table\.json, of \d{4}-/)

  await writeFile(join(at.cwd, 'home/.uamp/models.json'), '{"models":')
  const { url, cli } = await serving([name], { cwd: at.cwd, env: { UAMP_DATA: 'memory', ...at.env } })
  expect((await fetch(`${url}/ready`)).status).toBe(200)
  await cli.prints(/models\.json cannot be used: .*uamp models update/)
})

test('an update from a server is kept in the data folder that UAMP_DATA names', async () => {
  const list = [{ id: 'openai', models: [{ id: 'gpt-5', match: {}, prices: { input_mtok: 99, output_mtok: 2 }, context_window: 7 }] }]
  const server = createServer((_, response) => response.end(JSON.stringify(list))).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const source = `http://127.0.0.1:${(server.address() as AddressInfo).port}/data.json`
  const { cwd, env } = await place()
  const at = { cwd, env: { ...env, UAMP_DATA: join(cwd, 'data') } }
  const { stdout } = await finished(['models', 'update', source], at)
  expect(stdout).toContain(`1 models from ${source}: 0 are new, 1 have another price.`)
  expect(await readdir(join(cwd, 'data'))).toEqual(['models.json'])
  expect((await finished(['models', 'openai/gpt-5'], at)).stdout).toContain('$99 in, $2 out')
  expect((await finished(['models', 'openai/gpt-5-mini'], at)).stdout).toContain('$0.25 in')
})

test('an update that fails says why, and leaves the table as it is', async () => {
  const at = await place({ 'table.json': TABLE, 'broken.json': TABLE.replace('1000', '-1') })
  await finished(['models', 'update', 'table.json'], at)
  const file = join(at.cwd, 'home/.uamp/models.json')
  const before = await readFile(file, 'utf8')
  expect(await finished(['models', 'update', 'broken.json'], at)).toEqual({
    code: 1,
    stdout: '',
    stderr: 'error: broken.json cannot be used: "openai/echo" needs a number from 0 to 100000 as input. The table stays as it is\n',
  })
  expect(await readFile(file, 'utf8')).toBe(before)
})

test('a table that is older than that of this version is not used', async () => {
  const at = await place()
  await mkdir(join(at.cwd, 'home/.uamp'))
  const table = { from: 'long ago', date: '2020-01-01', models: { 'openai/gpt-5': { input: 99, output: 99 } } }
  await writeFile(join(at.cwd, 'home/.uamp/models.json'), JSON.stringify(table))
  expect((await finished(['models', 'openai/gpt-5'], at)).stdout).toContain('$1.25 in')
  expect((await finished(['models'], at)).stdout).toContain('from this version of uamp')
})

test('the chat says once that no price is known, and what the model takes', async () => {
  const { cwd, env } = await place({ 'agent.ts': AGENT.replace("'openai/echo'", "'openai/echo', fallbacks: ['openai/gpt-5']") })
  const opened = async (): Promise<Terminal> => {
    const options = { cwd, env: { ...env, XDG_STATE_HOME: join(cwd, 'state') }, columns: 160 }
    const terminal = new Terminal(['chat', 'agent.ts', '--data', 'memory'], options)
    await terminal.answers(/ listens\./)
    return terminal
  }
  const unpriced = await opened()
  await unpriced.says('hello', /no price is known for this model, so its cost is not counted/)
  await unpriced.says('again', / out\n/)
  expect(unpriced.output).not.toContain('no price is known')
  await unpriced.says('/usage', /no price is known for this model/)
  await unpriced.says(
    '/model',
    /openai\/echo +the model of helper that answers now; no price is known[^]*openai\/gpt-5 +a model of helper; \$1\.25 in/,
  )

  await writeFile(join(cwd, 'table.json'), TABLE)
  await finished(['models', 'update', 'table.json'], { cwd, env })
  const priced = await opened()
  await priced.says('hello', / out · \$/)
  expect(priced.output).not.toContain('no price is known')
  await priced.says('/usage', /The model takes 5,000 tokens, answers of up to 700\./)
  await priced.says(
    '/model',
    /openai\/echo +the model of helper that answers now; \$1000 in, .*; 5,000 tokens[^]*helper +this agent; 5,000 tokens/,
  )
})
