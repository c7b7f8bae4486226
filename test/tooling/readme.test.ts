import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { startChild } from '../support/child.ts'

const README = readFileSync('README.md', 'utf8')

/** A code block by the name in its first line. */
function block(name: string): string {
  const found = new RegExp(`\`\`\`js\n// ${name}\n(.*?)\`\`\``, 's').exec(README)?.[1]
  if (found === undefined) throw new Error(`README.md has no ${name}`)
  return found
}

/** A stranger's folder, with the package as built. */
function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'uamp-readme-'))
  onTestFinished(() => rmSync(path, { recursive: true, maxRetries: 5 }))
  mkdirSync(join(path, 'node_modules'))
  symlinkSync(resolve('.'), join(path, 'node_modules/uamp'), 'junction')
  // What `npm init -y` of npm 11 writes.
  writeFileSync(join(path, 'package.json'), '{ "type": "commonjs" }')
  return path
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

function run(cwd: string, file: string): ChildProcess & { readonly stdout: NodeJS.ReadableStream } {
  const child = spawn(process.execPath, [file], { cwd, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(async () => {
    if (child.exitCode === null && child.kill()) await once(child, 'exit')
  })
  return child
}

async function ready(url: string): Promise<void> {
  await expect
    .poll(
      () =>
        fetch(`${url}/ready`).then(
          ({ status }) => status,
          () => 0,
        ),
      { timeout: 20_000 },
    )
    .toBe(200)
}

test('the agent and the client of the README talk to each other', async () => {
  const cwd = folder()
  const port = String(await freePort())
  for (const name of ['agent.mjs', 'client.mjs']) writeFileSync(join(cwd, name), block(name).replaceAll('8787', port))
  const agent = run(cwd, 'agent.mjs')
  let said = ''
  agent.stdout.setEncoding('utf8').on('data', (printed: string) => void (said += printed))
  await Promise.race([ready(`http://localhost:${port}`), once(agent, 'exit').then(() => expect.fail('the agent ended'))])
  expect(await text(run(cwd, 'client.mjs').stdout)).toBe('polly wants a cracker \n')
  await expect.poll(() => said).toContain('Try it: curl')
  const line = /^Try it: (curl .*)$/m.exec(said)?.[1] ?? ''
  if (spawnSync('curl', ['--version']).status !== 0) return
  const tried = spawn('sh', ['-c', line], { stdio: ['ignore', 'pipe', 'ignore'] })
  expect(await text(tried.stdout)).toContain('"text":"Hello "')
})

const TEN = ['1', '2', '3', '4', '5', '6', '7', '8', '9', '10']

/** What a curl line of the README gets, event by event. */
async function streamed(line: RegExp, headers: Record<string, string>): Promise<string[]> {
  const [, path = '', body = ''] = line.exec(README) ?? []
  const { url } = await startChild(folder())
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body,
  })
  expect(response.headers.get('content-type')).toContain('text/event-stream')
  return (await response.text()).split('\n').flatMap((text) => (text.startsWith('data: ') ? [text.slice(6)] : []))
}

test('the curl line of the README streams an answer of the demo', async () => {
  const data = await streamed(/curl -N localhost:8787(\/events) -H 'accept: text\/event-stream' -d '(.*)'/, { accept: 'text/event-stream' })
  const events = data.map((text) => JSON.parse(text) as { type: string; delta?: { text: string } })
  expect(events.at(-1)?.type).toBe('response.done')
  const deltas = events.filter(({ type }) => type === 'response.delta')
  expect(deltas.map(({ delta }) => delta?.text.trim())).toEqual(TEN)
})

test('so does the one for OpenAI', async () => {
  const data = await streamed(/curl -N localhost:8787(\/v1\/chat\/completions) -d '(.*)'/, {})
  expect(data.pop()).toBe('[DONE]')
  const chunks = data.map((text) => JSON.parse(text) as { choices: { delta: { content?: string } }[] })
  expect(chunks.flatMap(({ choices }) => choices[0]?.delta.content?.trim() || [])).toEqual(TEN)
})
