import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { finished, project, serving } from './run.ts'

const IMPORT = `import { defineAgent } from 'uamp'`
const agent = (name: string): string => `defineAgent('${name}', async function* () {})`

const BROKEN = `import { defineAgent } from 'uamp'\nconst a: number = 1\nexport default defineAgent('x', async function* () {\n  const b: = 2\n})`

test.each<[string, string[], RegExp, Record<string, string>?]>([
  ['a file that is not there', ['nowhere.ts'], /There is no file .*nowhere\.ts\. Name an agent module/],
  ['a file that is misspelt', ['agnet.js'], /There is no file .*agnet\.js\. Did you mean agent\.js\?/, { 'agent.js': '' }],
  [
    'an import in CommonJS',
    ['a.js'],
    /outside a module.*`npm pkg set type=module`/s,
    { 'a.js': IMPORT, 'package.json': '{"type":"commonjs"}' },
  ],
  ['a folder without an agent', ['.'], /There is no agent in .*: put an agent\.ts/],
  ['a module without an agent', ['a.js'], /a\.js exports no agent\. End it with one/, { 'a.js': 'export const port = 1' }],
  ['a bare generator', ['a.js'], /but a function: pass it to defineAgent/, { 'a.js': 'export default async function* () {}' }],
  ['an agent without capabilities', ['a.js'], /defineAgent adds them/, { 'a.js': `export default { name: 'x', async *run() {} }` }],
  ['TypeScript that does not parse', ['a.ts'], /a\.ts does not parse: .*a\.ts:4/s, { 'a.ts': BROKEN }],
  ['a module that fails', ['a.js'], /failed while it loaded: set KEY/, { 'a.js': `throw new Error('set KEY')` }],
  ['two agents of one name', ['a.js'], /Two agents are called "x"/, { 'a.js': `${IMPORT}\nexport default [${agent('x')}, ${agent('x')}]` }],
  ['a name that cannot be one', ['a.js'], /"a b" cannot be an agent's name/, { 'a.js': `${IMPORT}\nexport default ${agent('a b')}` }],
  ['a token without a name', ['--token', 'hushhush'], /--token: a token is written name:secret/],
  ['two tokens of one name', ['--token', 'a:hushhush', '--token', 'a:hushhush2'], /two tokens are called "a"/],
  ['a secret that is short', ['--token', 'a:hushhush'], /secret of the token "a" has 8 characters, and needs 16: `openssl rand -hex 16`/],
  ['a file of tokens that is not there', ['--token-file', 'none'], /The token file none cannot be read: there is no such file/],
  ['a file without tokens', ['--token-file', 't'], /t contains no token: write a line name:secret/, { t: '# none\n\n' }],
  ['a file with half a token', ['--token-file', 't'], /t: a token is written name:secret/, { t: 'a:hushhush-hushhush\nhushhush\n' }],
  ['a name that is a URL', ['--allow-host', 'https://a.example'], /"https:\/\/a\.example" is not the name of a host/],
  ['a port that is none', ['--port', '70000'], /'70000' is invalid\. Choose a number from 1 to 65535/],
  ['an option that is none', ['--prot', '1'], /unknown option '--prot'\n\(Did you mean --port\?\)\n`npx uamp serve --help` lists/],
  ['a place where no folder can be', ['--data', '/proc/none'], /\/proc\/none.* cannot be (made|written)/],
  ['an open address', ['--host', '0.0.0.0'], /other machines.*\(--token-file, or --allow-anonymous\)/],
  ['an address that is none', ['--host', '203.0.113.7', '--token', 'a:hushhush-hushhush'], /no address "203\.0\.113\.7"/],
  ['an origin that is none', ['--origin', 'app'], /"app" is not an origin/],
])('refuses %s, and says what to do', async (_, args, message, files = {}) => {
  const { code, stderr } = await finished(['serve', '--port', '0', ...args], { cwd: await project(files), env: { UAMP_DATA: 'memory' } })
  expect(stderr).toMatch(message)
  expect(stderr).not.toMatch(/^ {4}at /m)
  expect(stderr).not.toContain('hushhush')
  expect(code).toBe(1)
})

test.skipIf(process.platform !== 'linux')(
  'a file system that lets nobody make a folder is refused, where Node tried for ever',
  async () => {
    const { code, stderr } = await finished(['serve', '--port', '0', '--data', '/proc/uamp/deep'])
    expect(stderr).toMatch(/The folder \/proc\/uamp cannot be made \(ENOENT\): choose another data folder/)
    expect(code).toBe(1)
  },
)

test('an empty UAMP_DATA put the database into the working folder', async () => {
  const cwd = await project()
  await serving([], { cwd, env: { UAMP_DATA: '' } })
  expect(existsSync(join(cwd, '.uamp/uamp.db'))).toBe(true)
  expect(existsSync(join(cwd, 'uamp.db'))).toBe(false)
})

test('tells where it failed to those who ask', async () => {
  const { stderr } = await finished(['serve', 'nowhere.ts'], { env: { UAMP_DEBUG: '1' } })
  expect(stderr).toMatch(/^ {4}at /m)
})

test('says what to do about UAMP_TOKENS, a port and a data folder that others have', async () => {
  const cwd = await project()
  const { url } = await serving(['--data', 'd'], { cwd })
  const taken = await finished(['serve', '--port', new URL(url).port, '--data', 'memory'])
  expect(taken).toMatchObject({ code: 1, stderr: expect.stringMatching(/Port \d+ is in use: .*\(--port 0 takes any free port\)/) })
  const locked = await finished(['serve', '--port', '0', '--data', 'd'], { cwd })
  expect(locked).toMatchObject({ code: 1, stderr: expect.stringMatching(/in use by another server: .*\(--data names it/) })
  const tokens = await finished(['serve'], { env: { UAMP_TOKENS: 'oops' } })
  expect(tokens).toMatchObject({ code: 1, stderr: expect.stringMatching(/UAMP_TOKENS: a token is written name:secret/) })
})

test.skipIf(process.platform === 'win32')('a pipe where SQLite expects a file is refused, where it waited for ever', async () => {
  const cwd = await project({ 'd/file': '', file: '' })
  const { cli } = await serving(['--data', 'd'], { cwd })
  cli.signal('SIGTERM')
  await cli.exit()
  spawnSync('mkfifo', [join(cwd, 'd/uamp.db-journal')])
  const pipe = await finished(['serve', '--port', '0', '--data', 'd'], { cwd })
  expect(pipe).toMatchObject({ code: 1, stderr: expect.stringMatching(/uamp\.db-journal is not a file: .*\(--data names it/) })
  expect(await finished(['store', 'show', '--data', 'd'], { cwd })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/is not a file/),
  })
  // An editor goes on without a memory.
  const acp = await finished(['acp', '--data', 'd'], { cwd, input: '' })
  expect(acp).toMatchObject({ code: 0, stderr: expect.stringMatching(/Sessions are not kept: .*uamp\.db-journal is not a file/) })
  const file = await finished(['serve', '--port', '0', '--data', 'file'], { cwd })
  expect(file).toMatchObject({ code: 1, stderr: expect.stringMatching(/file is not a folder: .*\(--data names it/) })
})
