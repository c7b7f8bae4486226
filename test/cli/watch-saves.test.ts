import { existsSync } from 'node:fs'
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { begin } from '../remotes/plain.ts'
import { say, textOf } from '../support/talk.ts'
import { overWebSocket } from '../support/wire.ts'
import { project, type Serving } from './run.ts'
import { reloads, watching } from './watching.ts'

/** An agent that says what `lib/word.js` exports. */
const AGENT = `import { defineAgent } from 'uamp'
import { word } from './lib/word.js'
export default defineAgent('one', async function* () { yield word })`
const word = (text: string): string => `export const word = '${text}'`
const files = (text: string) => ({ 'agent.js': AGENT, 'lib/word.js': word(text) })

async function says({ url }: Serving): Promise<string> {
  const wire = await overWebSocket(url)
  await wire.open()
  const said = textOf(await say(wire, 'hi'))
  wire.close()
  return said
}

test('editors that put a new file in the place of the old one', async () => {
  const cwd = await project(files('a'))
  const at = join(cwd, 'lib/word.js')
  const served = await watching(['dev', 'agent.js'], cwd)
  await writeFile(`${at}.tmp`, word('b'))
  await rename(`${at}.tmp`, at)
  await reloads(served, 1)
  expect(await says(served)).toBe('b')
  // The old file becomes a copy, and a new one is written.
  await rename(at, `${at}~`)
  await writeFile(at, word('c'))
  await reloads(served, 2)
  expect(await says(served)).toBe('c')
})

test('ten saves in a row: the last one counts', async () => {
  const cwd = await project(files('0'))
  const served = await watching(['dev', 'agent.js'], cwd)
  for (let i = 1; i <= 10; i++) await writeFile(join(cwd, 'lib/word.js'), word(`${i % 10}!`))
  await expect.poll(() => says(served)).toBe('0!')
})

test('a save while the files are being loaded is not lost', async () => {
  const slow = `${AGENT}
import { existsSync, writeFileSync } from 'node:fs'
if (word === 'b') {
  writeFileSync('loading', '')
  while (!existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 10))
}`
  const cwd = await project({ ...files('a'), 'agent.js': slow })
  const served = await watching(['dev', 'agent.js'], cwd)
  await writeFile(join(cwd, 'lib/word.js'), word('b'))
  await expect.poll(() => existsSync(join(cwd, 'loading'))).toBe(true)
  await writeFile(join(cwd, 'lib/word.js'), word('c'))
  await writeFile(join(cwd, 'go'), '')
  await reloads(served, 2)
  expect(await says(served)).toBe('c')
})

test('a reload while an answer streams loses nothing of it', async () => {
  const endless = `import { defineAgent } from 'uamp'
import { existsSync } from 'node:fs'
import { word } from './lib/word.js'
export default defineAgent('one', async function* () {
  for (let i = 0; !existsSync('enough'); i++) {
    yield word + i + ' '
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
})`
  const cwd = await project({ ...files('a'), 'agent.js': endless })
  const served = await watching(['dev', 'agent.js'], cwd)
  const wire = await overWebSocket(served.url)
  await wire.open()
  const running = await begin(wire, 'hi')
  await wire.next('response.delta')
  for (const times of [1, 2, 3]) {
    const before = wire.heard.length
    await writeFile(join(cwd, 'lib/word.js'), word(`b${times}`))
    await reloads(served, times)
    await wire.next((event) => event.type === 'response.delta' && wire.heard.indexOf(event) > before)
  }
  await writeFile(join(cwd, 'enough'), '')
  const events = await running.end()
  const words = textOf(events).trim().split(' ')
  expect(words).toEqual(words.map((_, i) => `a${i}`))
  expect(events.at(-1)).toMatchObject({ type: 'response.done', response: { status: 'completed' } })
  const numbers = wire.heard.map((event) => event['seq'] as number | undefined).filter((seq) => seq !== undefined)
  expect(numbers).toEqual(numbers.map((_, i) => (numbers[0] ?? 0) + i))
  expect(textOf(await say(wire, 'hi'))).toBe('')
})

test('a file outside of the folder is followed, one that nobody imports is not', async () => {
  const outside = await project({ 'shared.js': word('a') })
  const cwd = await project({ 'agent.js': AGENT.replace('./lib/word.js', `../${basename(outside)}/shared.js`) })
  const served = await watching(['dev', 'agent.js'], cwd)
  await writeFile(join(cwd, 'notes.js'), word('nobody imports it'))
  await writeFile(join(outside, 'notes.js'), word('nobody imports it'))
  await writeFile(join(outside, 'shared.js'), word('b'))
  await reloads(served, 1)
  expect(await says(served)).toBe('b')
  await writeFile(join(cwd, 'notes.js'), word('still nobody'))
  await writeFile(join(outside, 'shared.js'), word('c'))
  await reloads(served, 2)
  expect(await says(served)).toBe('c')
  expect(served.cli.stdout.match(/was read again/g)).toHaveLength(2)
})

test('a folder that is removed and made again is followed again', async () => {
  const cwd = await project(files('a'))
  const served = await watching(['dev', 'agent.js'], cwd)
  await rm(join(cwd, 'lib'), { recursive: true })
  await served.cli.prints(/does not exist[^]*The agents stay as they were/)
  expect(await says(served)).toBe('a')
  await mkdir(join(cwd, 'lib'))
  await writeFile(join(cwd, 'lib/word.js'), word('b'))
  await reloads(served, 1)
  await writeFile(join(cwd, 'lib/word.js'), word('c'))
  await reloads(served, 2)
  expect(await says(served)).toBe('c')
})

test('what is missing is loaded once it is there, without another save', async () => {
  const cwd = await project(files('a'))
  const served = await watching(['dev', 'agent.js'], cwd)
  await writeFile(join(cwd, 'agent.js'), AGENT.replace('./lib/word.js', './new/words/word.js'))
  await served.cli.prints(/does not exist[^]*The agents stay as they were/)
  await mkdir(join(cwd, 'new/words'), { recursive: true })
  await writeFile(join(cwd, 'new/words/word.js'), word('b'))
  await reloads(served, 1)
  expect(await says(served)).toBe('b')
})

test('a broken agent that a config names is loaded once it is mended', async () => {
  const cwd = await project({ ...files('a'), 'uamp.config.yaml': 'agents: [./agent.js]\n' })
  const served = await watching(['dev'], cwd)
  await mkdir(join(cwd, 'more'))
  await writeFile(join(cwd, 'more/two.js'), 'export default = 1')
  await writeFile(join(cwd, 'uamp.config.yaml'), 'agents: [./agent.js, ./more/two.js]\ndefaultAgent: one\n')
  await served.cli.prints(/two\.js:1[^]*The agents stay as they were/)
  await writeFile(join(cwd, 'more/two.js'), AGENT.replace("'one'", "'two'").replace('./lib', '../lib'))
  await served.cli.prints(/was read again: two changed/)
})

test('an agent that comes later has the newest code of what it imports', async () => {
  const cwd = await project({ ...files('a'), 'uamp.config.yaml': 'agents: [./agent.js]\n' })
  const served = await watching(['dev'], cwd)
  await writeFile(join(cwd, 'lib/word.js'), word('b'))
  await reloads(served, 1)
  await writeFile(join(cwd, 'two.js'), AGENT.replace("'one'", "'two'"))
  await writeFile(join(cwd, 'uamp.config.yaml'), 'agents: [./agent.js, ./two.js]\ndefaultAgent: two\n')
  await served.cli.prints(/was read again: two changed/)
  const wire = await overWebSocket(served.url)
  await wire.open({ agent: 'two' })
  expect(textOf(await say(wire, 'hi'))).toBe('b')
})

test('a folder that is a link', async () => {
  const cwd = await project(files('a'))
  const link = join(await project(), 'link')
  await symlink(cwd, link, 'junction')
  const served = await watching(['dev', join(link, 'agent.js')], cwd)
  await writeFile(join(cwd, 'lib/word.js'), word('b'))
  await reloads(served, 1)
  expect(await says(served)).toBe('b')
})

test('this package is not loaded twice where it is linked', async () => {
  const mark = `import { UampError, defineAgent } from 'uamp'
import { word } from './lib/word.js'
globalThis.first ??= UampError
export default defineAgent('one', async function* () { yield word + (globalThis.first === UampError) })`
  const cwd = await project({ ...files('a'), 'agent.js': mark })
  const served = await watching(['dev', 'agent.js'], cwd)
  await writeFile(join(cwd, 'lib/word.js'), word('b'))
  await reloads(served, 1)
  expect(await says(served)).toBe('btrue')
})
