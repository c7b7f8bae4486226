import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { choose } from '../../create-uamp/choices.js'
import { ROOT } from './project.ts'

function empty(): string {
  const folder = mkdtempSync(join(tmpdir(), 'uamp-create-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Without a terminal. */
function create(cwd: string, ...args: readonly string[]) {
  const env = { ...process.env, npm_config_user_agent: 'pnpm/10.1.0 npm/? node/v22', UAMP_VERSION: '' }
  return spawnSync(process.execPath, [join(ROOT, 'create-uamp/index.js'), ...args], { cwd, env, encoding: 'utf8', timeout: 10_000 })
}

test('without a terminal it asks nothing, and says what to do next', () => {
  const cwd = empty()
  const { status, stdout } = create(cwd)
  expect(status).toBe(0)
  expect(stdout).toContain('cd my-agent\n  pnpm install\n')
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  expect(JSON.parse(readFileSync(join(cwd, 'my-agent/package.json'), 'utf8'))).toMatchObject({ dependencies: { uamp: `^${version}` } })
})

test('each question has a flag', () => {
  const cwd = empty()
  expect(create(cwd, 'My Place', '--language', 'js', '--model', 'anthropic', '--uamp', '9.9.9').status).toBe(0)
  const folder = join(cwd, 'My Place')
  expect(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))).toMatchObject({
    name: 'my-place',
    dependencies: { uamp: '9.9.9' },
  })
  expect(readFileSync(join(folder, '.env.example'), 'utf8')).toContain('ANTHROPIC_API_KEY=')
  expect(readdirSync(folder)).toContain('agent.js')
})

test('a path to the package is meant from where one is', () => {
  const cwd = empty()
  expect(create(cwd, 'here', '--uamp', '../uamp').status).toBe(0)
  const manifest = JSON.parse(readFileSync(join(cwd, 'here/package.json'), 'utf8')) as object
  expect(manifest).toMatchObject({ dependencies: { uamp: `file:${join(realpathSync(cwd), '../uamp')}` } })
})

test('a folder that is not empty is left as it is', () => {
  const cwd = empty()
  writeFileSync(join(cwd, 'novel.txt'), 'once upon a time')
  const { status, stderr } = create(cwd, '.')
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringMatching(/is not empty, it has novel\.txt: name another folder/) })
  expect(readdirSync(cwd)).toEqual(['novel.txt'])
  expect(create(cwd, 'novel.txt').stderr).toContain('is a file: name another folder')
})

test('a repository without files is empty', () => {
  const cwd = empty()
  mkdirSync(join(cwd, '.git'))
  expect(create(cwd, '.').status).toBe(0)
  expect(readdirSync(cwd)).toContain('agent.ts')
})

test.for([
  [['--langage', 'js'], "Unknown option '--langage'"],
  [['--language', 'cobol'], '"cobol" is neither ts nor js'],
  [['--model', 'hal'], '"hal" is not one of none, openai'],
  [['one', 'two'], 'One folder, please'],
] as const)('%j is refused: %s', ([args, message]) => {
  const cwd = empty()
  expect(create(cwd, ...args)).toMatchObject({ status: 1, stderr: expect.stringContaining(message) })
  expect(readdirSync(cwd)).toEqual([])
})

test('at a terminal it asks three questions, and again after a wrong answer', async () => {
  const [input, output] = [new PassThrough(), new PassThrough()].map((stream) => Object.assign(stream, { isTTY: true }))
  if (!input || !output) throw new Error('no streams')
  let asked = ''
  const answers = ['here', 'cobol', 'js', '']
  output.setEncoding('utf8').on('data', (text: string) => {
    asked += text
    if (text.includes(']: ')) input.write(`${answers.shift() ?? ''}\n`)
  })
  expect(await choose([], { input, output })).toEqual({ folder: 'here', language: 'js', model: 'none', uamp: undefined })
  expect(asked).toContain('"cobol" is neither ts nor js')
  expect(asked.match(/\]: /g)).toHaveLength(4)
})

test('whoever leaves at a question has made nothing', async () => {
  const [input, output] = [new PassThrough(), new PassThrough()].map((stream) => Object.assign(stream, { isTTY: true }))
  if (!input || !output) throw new Error('no streams')
  input.end()
  await expect(choose([], { input, output })).rejects.toThrow('Nothing was made')
})

test('both packages have one version', () => {
  const versions = ['package.json', 'create-uamp/package.json'].map(
    (file) => (JSON.parse(readFileSync(join(ROOT, file), 'utf8')) as { version: string }).version,
  )
  expect(versions[0]).toBe(versions[1])
})
