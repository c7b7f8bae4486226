import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'

/** A process of its own for each case: loader hooks live in a thread of Node's, which a test runner stands in front of. */
let folder: string

const FILES = {
  'agent.ts': `import { greet, type Greeting } from './lib.ts'
import { suffix } from './plain.js'
const greeting: Greeting = { text: greet('you') + suffix }
export default greeting`,
  'lib.ts': `export interface Greeting { readonly text: string }
export const greet = (who: string): string => \`hello \${who}\``,
  'plain.js': `export const suffix = '!'`,
  'module.mts': `export default { n: 1 as number }`,
  'plain.mjs': `import { suffix } from './plain.js'\nexport default suffix`,
  'broken.ts': `const a: number = 1\nconst b: = 2\nexport default a`,
  'broken.js': `export const a = 1\nconst = 2`,
  'enum.ts': `enum Level { low }\nexport default Level.low`,
  'lost-file.ts': `import { x } from './missing.ts'\nexport default x`,
  'lost.ts': `import { x } from './missing'\nexport default x`,
  'throws.ts': `const url: string | undefined = undefined\nif (!url) throw new Error('set MODEL_URL')\nexport default url`,
  'agent.json': `{}`,
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'uamp-load-'))
  await symlink(resolve('node_modules'), join(folder, 'node_modules'), 'junction')
  await mkdir(join(folder, 'agents'))
  await writeFile(join(folder, 'agents/package.json'), '{ "type": "module" }')
  await Promise.all(Object.entries(FILES).map(([name, text]) => writeFile(join(folder, 'agents', name), text)))
  await build({
    entryPoints: ['src/config/modules.ts', 'src/config/strip-types.ts', 'src/config/follow-imports.ts'],
    outdir: join(folder, 'config'),
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
  })
  await writeFile(join(folder, 'config/package.json'), '{ "type": "module" }')
  await writeFile(
    join(folder, 'config/run.js'),
    `import { Modules } from './modules.js'
for (const path of process.argv.slice(2)) {
  const result = await new Modules().load(path).then((module) => ({ value: module.default }), ({ code, message }) => ({ code, message }))
  console.log(JSON.stringify(result))
}`,
  )
})

test('what a module imports is followed for as long as it imports it', async () => {
  const own = await mkdtemp(join(tmpdir(), 'uamp-follow-'))
  onTestFinished(() => rm(own, { recursive: true }))
  await writeFile(join(own, 'one.mjs'), `export { two as default } from './two.mjs'`)
  await writeFile(join(own, 'two.mjs'), `import './three.mjs'\nexport const two = 2`)
  await writeFile(join(own, 'three.mjs'), '')
  await writeFile(
    join(folder, 'config/follow.js'),
    `import { writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { Modules } from './modules.js'
const modules = new Modules({ watch: true })
for (const text of [undefined, "import './three.mjs'\\nexport default 1", 'export default 0']) {
  if (text !== undefined) writeFileSync('one.mjs', text)
  await modules.load('one.mjs')
  console.log(modules.filesOf(process.cwd() + '/one.mjs').map((file) => basename(file)).join(' '))
}`,
  )
  const { stdout } = await promisify(execFile)(process.execPath, [join(folder, 'config/follow.js')], { cwd: own })
  expect(stdout.trim().split('\n')).toEqual(['one.mjs two.mjs three.mjs', 'one.mjs three.mjs', 'one.mjs'])
})

afterAll(() => rm(folder, { recursive: true }))

async function load(...names: string[]): Promise<{ value?: unknown; code?: string; message?: string }[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [join(folder, 'config/run.js'), ...names], { cwd: join(folder, 'agents') })
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}

test('loads TypeScript that imports TypeScript and JavaScript, and JavaScript', async () => {
  expect(await load('agent.ts', 'module.mts', 'plain.mjs')).toEqual([
    { value: { text: 'hello you!' } },
    { value: { n: 1 } },
    { value: '!' },
  ])
})

test.each([
  ['broken.ts', 'invalid_request', /does not parse: .*broken\.ts:2/s],
  ['broken.js', 'invalid_request', /does not parse: .*broken\.js:2\n.*`npx uamp doctor .*broken\.js` checks it again/s],
  ['enum.ts', 'invalid_request', /enum\.ts:1.*no enum, namespace or parameter property/s],
  ['lost.ts', 'invalid_request', /missing.*Give the file its extension/s],
  ['lost-file.ts', 'invalid_request', /missing\.ts.*Check the name and the folder/s],
  ['throws.ts', 'invalid_request', /failed while it loaded: set MODEL_URL/],
  ['agent.json', 'invalid_request', /neither JavaScript nor TypeScript/],
  ['nothing.ts', 'not_found', /There is no file .*nothing\.ts/],
])('refuses %s and says what to do', async (name, code, message) => {
  const [result] = await load(name)
  expect(result).toEqual({ code, message: expect.stringMatching(message) })
})
