import { mkdir, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { startUpstream } from '../providers/upstream/index.ts'
import { begin } from '../remotes/plain.ts'
import { say, textOf } from '../support/talk.ts'
import { overWebSocket } from '../support/wire.ts'
import { project, serving } from './run.ts'
import { verifies } from '../support/verifies.ts'

const agent = (name: string, says: string): string => `import { defineAgent, text } from 'uamp'
export default defineAgent('${name}', async function* (turn) {
  yield text('${says} begins')
  if (turn.messages.at(-1).content === 'ask') yield text((await turn.ask('tool.call', { name: 'go', arguments: '{}' })).result)
  yield text(', ${says} ends')
}, { description: '${says}', capabilities: { context_window: ${says.length} } })`

verifies(
  'gateway.reload',
  'a module that changes replaces its agent: sessions go on, and a running answer is finished by the old one',
  async () => {
    const cwd = await project({ 'uamp.config.yaml': 'agents: [./one.js]\n', 'one.js': agent('one', 'old') })
    const { url, cli } = await serving([], { cwd })
    const wire = await overWebSocket(url)
    await wire.open()
    await wire.next('capabilities')
    const running = await begin(wire, 'ask')
    const call = await wire.next('tool.call')
    await writeFile(join(cwd, 'one.js'), agent('one', 'newer'))
    await cli.prints(/uamp\.config\.yaml was read again: one changed/)
    expect(await wire.next('capabilities')).toMatchObject({ capabilities: { context_window: 'newer'.length } })
    await wire.send({ type: 'tool.result', call_id: call['call_id'], result: ', asked' })
    expect(textOf(await running.end())).toBe('old begins, asked, old ends')
    expect(textOf(await say(wire, 'and now?'))).toBe('newer begins, newer ends')
  },
)

verifies(
  ['gateway.reload', 'gateway.announced'],
  'models, instructions and agents change; what is unchanged is left alone; what needs a start is told',
  async () => {
    const upstream = await startUpstream()
    const providers = `providers:\n  ollama: { baseUrl: "${upstream.url}/ollama/v1" }\n`
    const one = (instructions: string): string => `  - { name: one, model: ollama/echo, instructions: ${instructions} }\n`
    const cwd = await project({
      'uamp.config.yaml': `agents:\n${one('Be kind')}  - { name: two, model: ollama/echo }\n${providers}`,
    })
    const { url, cli } = await serving([], { cwd })
    const wire = await overWebSocket(url)
    const session = await wire.open({ agent: 'one' })
    await say(wire, 'hi', { session })
    expect(JSON.stringify(upstream.requests.at(-1)?.body)).toContain('Be kind')
    await writeFile(
      join(cwd, 'uamp.config.yaml'),
      `agents:\n${one('Be brief')}  - { name: three, model: ollama/echo }\n${providers}port: 1234\n`,
    )
    await cli.prints(/was read again: one, three changed; two removed; port will change at the next start/)
    await say(wire, 'hi', { session })
    expect(JSON.stringify(upstream.requests.at(-1)?.body)).toContain('Be brief')
    const { agents } = (await (await fetch(`${url}/agents`)).json()) as { agents: { name: string }[] }
    expect(agents.map(({ name }) => name)).toEqual(['one', 'three'])
    const told = () => wire.heard.filter(({ type }) => type === 'capabilities').length
    const before = told()
    await writeFile(
      join(cwd, 'uamp.config.yaml'),
      `# The same\nagents:\n${one('Be brief')}  - { name: three, model: ollama/echo }\n${providers}port: 1234\n`,
    )
    await cli.prints(/was read again: nothing changed/)
    await say(wire, 'hi', { session })
    expect(told()).toBe(before)
  },
)

verifies(
  'gateway.reload-broken',
  'a config that is broken is reported with its line, and the old one stays until it is mended',
  async () => {
    const cwd = await project({ 'uamp.config.yaml': 'agents: [./one.js]\n', 'one.js': agent('one', 'old') })
    const { url, cli } = await serving([], { cwd })
    const wire = await overWebSocket(url)
    await wire.open()
    await writeFile(join(cwd, 'uamp.config.yaml'), 'agents:\n  - ./one.js\n  - ./gone.js\n')
    await cli.prints(/uamp\.config\.yaml:3: agents\[1\] is "\.\/gone\.js", but there is no agent at .*\n.*The agents stay as they were/)
    expect(textOf(await say(wire, 'hi'))).toBe('old begins, old ends')
    await writeFile(join(cwd, 'uamp.config.yaml'), 'agents: [./two.js]\n')
    await cli.prints(/there is no agent at .*two\.js/)
    await writeFile(join(cwd, 'two.js'), agent('two', 'other'))
    await writeFile(join(cwd, 'uamp.config.yaml'), 'agents: [./one.js, ./two.js]\n')
    await cli.prints(/was read again: two changed/)
    const session = await wire.open({ agent: 'two' })
    expect(textOf(await say(wire, 'hi', { session }))).toBe('other begins, other ends')
  },
)

verifies('gateway.reload', 'a config that is a TypeScript module is loaded again', async () => {
  const config = (says: string): string => `import { defineAgent, text, type AgentPort } from 'uamp'
const one: AgentPort = defineAgent('one', async function* () { yield text('${says}') })
export default { agents: [one] }`
  const cwd = await project({ 'uamp.config.ts': config('old') })
  const { url, cli } = await serving([], { cwd })
  const wire = await overWebSocket(url)
  await wire.open()
  expect(textOf(await say(wire, 'hi'))).toBe('old')
  await writeFile(join(cwd, 'uamp.config.ts'), config('newer'))
  await cli.prints(/was read again: one changed/)
  expect(textOf(await say(wire, 'hi'))).toBe('newer')
})

verifies('gateway.reload', 'a config that is a link is read again when it leads elsewhere, as in a cluster', async () => {
  const cwd = await project({ 'one.js': agent('one', 'old'), 'other.js': agent('two', 'new') })
  for (const [version, module] of [
    ['..1', 'one.js'],
    ['..2', 'other.js'],
  ] as const) {
    await mkdir(join(cwd, version))
    await writeFile(join(cwd, version, 'uamp.config.json'), JSON.stringify({ agents: [`./${module}`] }))
  }
  await symlink('..1', join(cwd, '..data'))
  await symlink('..data/uamp.config.json', join(cwd, 'uamp.config.json'))
  const { cli } = await serving([], { cwd })
  await symlink('..2', join(cwd, '..new'))
  await rename(join(cwd, '..new'), join(cwd, '..data'))
  await cli.prints(/uamp\.config\.json was read again: two changed; one removed/)
})

verifies('gateway.reload', 'a module that never loads does not keep the server from stopping as it should', async () => {
  const cwd = await project({ 'uamp.config.yaml': 'agents: [./one.js]\n', 'one.js': agent('one', 'old') })
  const { cli } = await serving([], { cwd })
  await writeFile(join(cwd, 'one.js'), `console.log('never loaded'); await new Promise(() => {})`)
  await cli.prints(/never loaded/)
  expect(await cli.signalUntilExit('SIGTERM')).toBe(0)
})
