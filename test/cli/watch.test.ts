import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { begin } from '../remotes/plain.ts'
import { say, textOf } from '../support/talk.ts'
import { overWebSocket } from '../support/wire.ts'
import { project } from './run.ts'
import { watching } from './watching.ts'

/** `words` is in a file that the agent's module imports, and that one imports another. */
const agent = (ending: string): string => `import { defineAgent } from 'uamp'
import { begins } from './lib/words.${ending}'
export default defineAgent('one', async function* (turn) {
  yield begins()
  if (turn.messages.at(-1).content === 'ask') yield (await turn.ask('tool.call', { name: 'go', arguments: '{}' })).result
  yield ', ' + begins()
})`
const words = (ending: string): string => `import { word } from './word.${ending}'\nexport const begins = () => word`

const typed = (word: string): string => `export const word: string = '${word}'`
const untyped = (word: string): string => `export const word = '${word}'`

test.each([
  ['dev', 'a module', ['dev', 'agent.ts'], 'ts', typed],
  ['serve --watch', 'a module', ['serve', 'agent.js', '--watch'], 'js', untyped],
  ['dev', 'a module that a config names', ['dev'], 'ts', typed],
] as const)(
  'uamp %s: a file that %s imports changes; a running answer is finished by the old code',
  async (_, what, args, ending, word) => {
    const config = what === 'a module' ? {} : { 'uamp.config.yaml': `agents: [./agent.${ending}]\n` }
    const cwd = await project({ [`agent.${ending}`]: agent(ending), [`lib/words.${ending}`]: words(ending), ...config })
    await writeFile(join(cwd, `lib/word.${ending}`), word('old'))
    const { url, cli } = await watching(args, cwd)
    const wire = await overWebSocket(url)
    await wire.open()
    const running = await begin(wire, 'ask')
    const call = await wire.next('tool.call')
    await writeFile(join(cwd, `lib/word.${ending}`), word('newer'))
    await cli.prints(/was read again: one changed/)
    await wire.send({ type: 'tool.result', call_id: call['call_id'], result: '!' })
    expect(textOf(await running.end())).toBe('old!, old')
    expect(textOf(await say(wire, 'and now?'))).toBe('newer, newer')
    await writeFile(join(cwd, `lib/word.${ending}`), word('newest!'))
    await cli.prints(/changed[^]*was read again: one changed/)
    expect(textOf(await say(wire, 'and now?'))).toBe('newest!, newest!')
  },
)

test.each([
  ['ts', typed],
  ['js', untyped],
] as const)(
  'a mistake in a file that is imported (%s) keeps the old code, and is told with its line until it is mended',
  async (ending, word) => {
    const cwd = await project({ [`agent.${ending}`]: agent(ending), [`lib/words.${ending}`]: words(ending) })
    await mkdir(join(cwd, 'lib'), { recursive: true })
    await writeFile(join(cwd, `lib/word.${ending}`), word('old'))
    const { url, cli } = await watching(['dev', `agent.${ending}`], cwd)
    const wire = await overWebSocket(url)
    await wire.open()
    await writeFile(join(cwd, `lib/word.${ending}`), `// Something\n\nexport const word = = 'broken'`)
    await cli.prints(new RegExp(`lib/word\\.${ending}:3[^]*The agents stay as they were`))
    expect(textOf(await say(wire, 'still there?'))).toBe('old, old')
    await writeFile(join(cwd, `lib/word.${ending}`), word('mended'))
    await cli.prints(/was read again: one changed/)
    expect(textOf(await say(wire, 'and now?'))).toBe('mended, mended')
  },
)

test('a new import that is broken is told, and loaded once it is there', async () => {
  const cwd = await project({ 'agent.js': agent('js'), 'lib/words.js': words('js'), 'lib/word.js': untyped('old') })
  const { url, cli } = await watching(['dev', 'agent.js'], cwd)
  const wire = await overWebSocket(url)
  await wire.open()
  await writeFile(join(cwd, 'lib/words.js'), `import { word } from './other.js'\nexport const begins = () => word`)
  await cli.prints(/imports something that does not exist[^]*The agents stay as they were/)
  expect(textOf(await say(wire, 'hi'))).toBe('old, old')
  await writeFile(join(cwd, 'lib/other.js'), untyped('other'))
  await writeFile(join(cwd, 'lib/words.js'), `import { word } from './other.js'\nexport const begins = () => word + '!'`)
  await cli.prints(/was read again: one changed/)
  expect(textOf(await say(wire, 'hi'))).toBe('other!, other!')
})
