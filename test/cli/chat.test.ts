import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { WebSocketServer } from 'ws'
import { demo } from '../../src/agents/demo/index.ts'
import { serve } from '../../src/serve/index.ts'
import { Cli, finished, project, serving } from './run.ts'

/** One for all that only talk to it. */
let url = ''
beforeAll(async () => {
  const server = await serve(demo(), { port: 0, data: 'memory', log: () => undefined })
  url = server.url
  return () => server.close({ graceMs: 0 })
})

const ID = '[0-9a-f-]{36}'

test('piped lines are messages; only the answers go to standard output', async () => {
  const input = 'hello\n\n/think hard\n/tool add {"a":1,"b":2}\n/tool slow {"ms":20}\n/tool none\n/progress 2\nlast, without an end'
  const { code, stdout, stderr } = await finished(['chat', url], { input })
  expect(stdout.split('\n')).toEqual([
    'You said: hello',
    'I thought about: hard',
    'add answered: {"sum":3}',
    'slow answered: {"waited_ms":20}',
    expect.stringMatching(/^none failed: /),
    'Done in 2 steps.',
    'You said: last, without an end',
    '',
  ])
  expect(stderr.split('\n')).toEqual([
    'Someone wants me to think about "hard". I have thought about it.',
    '→ add {"a":1,"b":2}',
    '← {"sum":3}',
    '→ slow {"ms":20}',
    ...['25', '50', '75', '100'].map((percent) => `  ${percent} %`),
    '← {"waited_ms":20}',
    '→ none {}',
    expect.stringMatching(/^← .*There is no tool/),
    '· Step 1 of 2 (50 %)',
    '· Step 2 of 2 (100 %)',
    '',
  ])
  expect(code).toBe(0)
})

test('media is named, with its content id, and saved', async () => {
  const cwd = await project()
  const { stdout } = await finished(['chat', url], { input: '/image\n/file\n/audio 1\n/video\n', env: { TMPDIR: cwd } })
  const saved = (name: string) => `saved as (\\S+/${name})\\]\n`
  const image = new RegExp(`^\\[image png One orange pixel ${ID} ${saved('1-image.png')}Here is an image\\.\n`).exec(stdout)
  expect(image).not.toBeNull()
  expect((await readFile(image?.[1] ?? '')).subarray(1, 4).toString()).toBe('PNG')
  expect(stdout).toMatch(new RegExp(`^\\[file demo.csv text/csv ${ID} ${saved('2-demo.csv')}Here is a file\\.\n`, 'm'))
  expect(stdout).toMatch(new RegExp(`^A tone of 1 s\\.\n\\[audio pcm16 1 s A tone ${ID} ${saved('3-audio.pcm')}`, 'm'))
  expect(stdout).toMatch(new RegExp(`^\\[video mp4 0 s A video without frames ${ID} ${saved('4-video.mp4')}`, 'm'))
})

test('approvals are asked: yes, no, and no when nobody is left to answer', async () => {
  const { stdout, stderr, code } = await finished(['chat', url], { input: '/approve a\ny\n/approve b\nn\n/approve c\n' })
  expect(stdout).toBe('Approved: a\nDenied: b\nDenied: c\n')
  expect(stderr).toBe('a [y/n]\nb [y/n]\nc [y/n]\n')
  expect(code).toBe(0)
})

test('a response that failed is told, the next one is answered, and the exit code is 1', async () => {
  const { stdout, stderr, code } = await finished(['chat', url], { input: '/error kaput\nhello\n' })
  expect(stderr).toContain('kaput: You asked me to fail')
  expect(stdout).toBe('You said: hello\n')
  expect(code).toBe(1)
})

test('/exit leaves', async () => {
  const cli = new Cli(['chat', url])
  cli.write('hello\n/exit\nnever\n')
  expect(await cli.exit()).toBe(0)
  expect(cli.stdout).toBe('You said: hello\n')
})

test('Ctrl-C stops the answer, and leaves when nothing runs', async () => {
  const cli = new Cli(['chat', url])
  cli.write('/count 1000000 5\n')
  await cli.prints(/1 2 3/)
  cli.signal('SIGINT')
  await cli.prints(/\(cancelled\)/)
  cli.write('hello\n')
  await cli.prints(/You said: hello/)
  expect(await cli.signalUntilExit('SIGINT')).toBe(130)
})

test('goes on with an earlier session, without saying it all again', async () => {
  const { headers } = await fetch(`${url}/events`, {
    method: 'POST',
    body: JSON.stringify([{ type: 'session.create' }, { type: 'input.text', text: 'first' }]),
  })
  const session = ['--session', headers.get('x-session-id') ?? '']
  expect((await finished(['chat', url, ...session], { input: 'second\n' })).stdout).toBe('You said: firstsecond\n')
  const { stdout } = await finished(['chat', url, ...session], { input: '/history\n' })
  expect(stdout).toMatch(/^user: .*\nassistant: You said: .*\nuser: \/history\n$/)
})

test('tells of a connection that is lost and found, and nothing of the answer is missing', async () => {
  const cwd = await project()
  const before = await serving(['--data', 'd'], { cwd })
  const { port } = new URL(before.url)
  const cli = new Cli(['chat', before.url])
  cli.write('one\n')
  // With the end of the line comes the end of the response: only then is it surely stored.
  await cli.prints(/You said: one\n/)
  before.cli.signal('SIGKILL')
  await before.cli.exit()
  await cli.prints(/\(the connection to http:\S+ is lost; trying again\)/)
  await serving(['--data', 'd', '--port', port], { cwd })
  await cli.prints(/\(connected again\)/)
  cli.write('/history\n')
  await cli.prints(/user: one\nassistant: You said: one\nuser: \/history\n/)
})

test('lets in by token, and says what is wrong with it', async () => {
  const secret = 'wonderland-7b1f9c04'
  const { url } = await serving(['--token', `alice:${secret}`])
  const cwd = await project({ 'my-token': `${secret}\n`, empty: '\n', many: 'a b' })
  const attempt = (args: string[] = [], env: Record<string, string> = {}) =>
    finished(['chat', url, ...args], { input: 'hello\n', cwd, env })
  const known = { code: 0, stdout: 'You said: hello\n' }
  const told = (code: number, why: string) => ({ code, stderr: expect.stringContaining(why) as string })
  const refused = (why: string) => told(3, why)
  const cases: [Promise<unknown>, object][] = [
    [attempt(), refused('wants a token: `npx uamp chat --token-file')],
    [attempt(['--token', `alice:${secret}`]), refused('the secret alone')],
    [attempt(['--token', secret]), known],
    // These two cannot be read in the list of processes.
    [attempt(['--token-file', 'my-token']), known],
    [attempt([], { UAMP_TOKEN: secret }), known],
    [attempt(['--token-file', 'none']), told(2, 'The token file none cannot be read: there is no such file')],
    [attempt(['--token-file', 'empty']), told(2, 'must contain one secret')],
    [attempt(['--token-file', 'many']), told(2, 'must contain one secret')],
  ]
  for (const [outcome, expected] of cases) expect(await outcome).toMatchObject(expected)
})

test('talks to the agent that is named, by option or by address', async () => {
  const agent = (name: string) =>
    `defineAgent('${name}', async function* () { yield { type: 'response.delta', delta: { type: 'text', text: 'I am ${name}' } } })`
  const cwd = await project({ 'a.js': `import { defineAgent } from 'uamp'\nexport default [${agent('one')}, ${agent('two.b')}]` })
  const { url } = await serving(['a.js'], { cwd })
  const attempt = (address: string, ...args: string[]) => finished(['chat', address, ...args], { input: 'hello\n' })
  expect(await attempt(url)).toMatchObject({ code: 3, stderr: expect.stringContaining('Choose one: --agent one, --agent two.b') })
  expect(await attempt(url, '--agent', 'three')).toMatchObject({ code: 3, stderr: expect.stringContaining('There is no agent "three"') })
  expect((await attempt(url, '--agent', 'two.b')).stdout).toBe('I am two.b\n')
  expect((await attempt(`${url}/agents/one`)).stdout).toBe('I am one\n')
  expect((await attempt(url.replace('http://', ''), '--agent', 'one')).stdout).toBe('I am one\n')
})

test('says what to do when there is nobody to talk to', async () => {
  // Port 1 is for no service that listens here.
  const nobody = await finished(['chat', 'http://127.0.0.1:1'])
  expect(nobody).toMatchObject({
    code: 4,
    stderr: expect.stringMatching(/There is no server at http:\/\/127\.0\.0\.1:1\. Start one with `npx uamp serve`/),
  })
  const unknown = await finished(['chat', url, '--session', 'sess_none'])
  expect(unknown).toMatchObject({ code: 3, stderr: expect.stringContaining('Leave --session out') })
  const nonsense = await finished(['chat', 'ftp://example.com'])
  expect(nonsense).toMatchObject({ code: 2, stderr: expect.stringContaining('write it like http://localhost:8787') })
})

/** A server that answers every event with this one. */
async function hostile(answer: (event: { event_id: string }) => object): Promise<string> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  server.on('connection', (socket) =>
    socket.on('message', (data: Buffer) => socket.send(JSON.stringify(answer(JSON.parse(data.toString()))))),
  )
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of server.clients) socket.terminate()
    server.close()
  })
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const EVIL = 'no\u001B]0;pwned\u0007 \u001B[2Jway\u009B1m\u202E'

test('what a server says when it refuses cannot write to the terminal', async () => {
  const url = await hostile(({ event_id }) => ({
    type: 'session.error',
    event_id: 'x',
    error: { code: 'forbidden', message: EVIL, details: { event_id, agents: [EVIL] } },
  }))
  const { stderr, code } = await finished(['chat', url], { input: 'hello\n' })
  expect(code).toBe(3)
  expect(stderr).toContain('no way')
  expect(stderr).not.toMatch(/(?!\n)\p{Cc}|\u202E|pwned/u)
})
