import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { rolldown } from 'rolldown'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { connect } from '../../src/client/node.ts'
import { Child } from '../docs/child.ts'
import { added, PLATFORMS } from '../support/platforms.ts'
import { isLong, onlyInLongTrials } from '../support/trials.ts'
import { firstMinutes, versionOf } from './newcomer.ts'
import { DENO, Fresh, hasNodes, NODES, ROOT, run } from './project.ts'

// npm may have to fetch what the package depends on.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const fresh = new Fresh()
let typescript: string
let javascript: string
beforeAll(async () => {
  await fresh.pack()
  typescript = await fresh.create('in-typescript')
  javascript = await fresh.create('in-javascript', '--language', 'js')
})
afterAll(() => {
  fresh.close()
  rmSync(OUT, { recursive: true, force: true })
})

/** No packages in or above it. */
const OUT = `${fresh.folder}-bundled`
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')
const PASSED = /pass 1\b/
const NO_NODES = 'the runtimes are large, and for Linux on x64'

/** Its second agent is a model by name, whose provider is loaded when it is asked: here the first agent. */
const SERVER = `import { llmAgent } from 'uamp/agents/llm'
import { serve } from 'uamp/server/node'
import agent from './agent.ts'

const server = await serve(agent, { port: 0 })
process.env.OPENAI_API_KEY = 'none'
process.env.OPENAI_BASE_URL = server.url + '/v1'
server.agents.add(llmAgent({ name: 'named', model: 'openai/parrot' }))
const body = JSON.stringify({ model: 'named', messages: [{ role: 'user', content: 'in one file' }] })
const response = await fetch(server.url + '/v1/chat/completions', { method: 'POST', body })
console.log(await response.text())
await server.close()
`

describe('what create-uamp makes', () => {
  test('names the package that it was told to', () => {
    const manifest = JSON.parse(readFileSync(join(typescript, 'package.json'), 'utf8')) as { dependencies: object }
    expect(manifest).toMatchObject({ name: 'in-typescript', type: 'module', dependencies: { uamp: fresh.uamp } })
    expect(readdirSync(typescript).toSorted()).toEqual(
      ['.env.example', '.gitignore', 'agent.test.ts', 'agent.ts', 'package.json', 'tsconfig.json'].toSorted(),
    )
  })

  test('passes its own test, and the compiler', async () => {
    expect(await run(['npm', 'test'], { cwd: typescript })).toMatchObject({ code: 0, output: expect.stringMatching(PASSED) })
    expect(await run(['npm', 'test'], { cwd: javascript })).toMatchObject({ code: 0, output: expect.stringMatching(PASSED) })
    expect(await run([process.execPath, TSC], { cwd: typescript })).toEqual({ code: 0, output: '' })
  })

  test('so does one with a model, whoever the provider is', async () => {
    const models = ['openai', 'anthropic', 'google', 'ollama']
    const folders = await Promise.all(models.map((model) => fresh.create(`with-${model}`, '--model', model)))
    for (const cwd of isLong ? folders : folders.slice(0, 1))
      expect(await run([process.execPath, '--import', 'tsx', '--test', 'agent.test.ts'], { cwd })).toMatchObject({ code: 0 })
    const config = readFileSync(join(typescript, 'tsconfig.json'), 'utf8').replace('"*.ts"', '"with-*/*.ts"')
    writeFileSync(join(fresh.folder, 'tsconfig.json'), config)
    expect(await run([process.execPath, TSC], { cwd: fresh.folder })).toEqual({ code: 0, output: '' })
  })

  test('starts, and answers', async () => {
    const { scripts } = JSON.parse(readFileSync(join(typescript, 'package.json'), 'utf8')) as { scripts: { start: string } }
    const [command = '', ...args] = scripts.start.split(' ')
    const child = new Child(join(fresh.folder, 'node_modules/.bin', command), [...args, '--port', '0'], { cwd: typescript })
    onTestFinished(() => child.stop())
    const [, url = ''] = await child.printed(/ at (http:\S+)/)
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ model: 'parrot', messages: [{ role: 'user', content: 'polly' }] }),
    })
    expect(await response.text()).toContain('"polly "')
  })
})

describe('on each Node', () => {
  onlyInLongTrials(NO_NODES, hasNodes)
  // tsx used to load the sources of our dependencies in place of their output where a project says `allowJs`.
  const versions = Object.entries(NODES).flatMap(([version, node]) => [
    { version, way: 'JavaScript', command: [node, '--test', 'agent.test.js'], language: 'js' },
    { version, way: 'tsx with allowJs', command: [node, '--import', 'tsx', '--test', 'agent.test.ts'], language: 'ts' },
    ...(version.startsWith('20.')
      ? []
      : [{ version, way: 'types stripped by Node', command: [node, '--test', 'agent.test.ts'], language: 'ts' }]),
  ])

  test.for(versions)('$version, $way', async ({ command, language }) => {
    const cwd = language === 'js' ? javascript : await allowingJs()
    expect(await run(command, { cwd })).toMatchObject({ code: 0, output: expect.stringMatching(PASSED) })
  })

  test('uamp serve takes TypeScript on the oldest', async () => {
    const main = join(fresh.folder, 'node_modules/uamp/dist/cli/main.js')
    const child = new Child(NODES['20.19.6'] ?? '', [main, 'serve', 'agent.ts', '--port', '0'], { cwd: typescript })
    onTestFinished(() => child.stop())
    const [, url = ''] = await child.printed(/ at (http:\S+)/)
    expect((await fetch(`${url}/ready`)).status).toBe(200)
  })
})

describe('a newcomer', () => {
  const nodes = hasNodes ? Object.entries(NODES) : [[process.versions.node, process.execPath] as const]
  // The tests above have both languages on each.
  const ways = nodes.map(([version, node], at) => ({ version, node, language: at % 2 === 0 ? ('ts' as const) : ('js' as const) }))

  test.for(ways)('makes, changes, runs, asks, chats and tests an agent: $language, Node $version', async ({ node, language }) => {
    const { seconds, ...came } = await firstMinutes(fresh, { node, language })
    expect(came).toEqual({ asked: 'You said hello there', chatted: true, tested: true })
    // How long it takes is for people to judge: the machine, and what npm has to fetch, decide most of it.
    process.stdout.write(
      `The first answer came ${seconds.toFixed(1)} s after \`npm create uamp\` (${language}, Node ${await versionOf(node)})\n`,
    )
  })
})

let allowing: string | undefined
async function allowingJs(): Promise<string> {
  if (allowing !== undefined) return allowing
  allowing = await fresh.create('allowing-js')
  const file = join(allowing, 'tsconfig.json')
  writeFileSync(file, readFileSync(file, 'utf8').replace('"strict": true', '"allowJs": true,\n    "strict": true'))
  return allowing
}

describe('installed from its tarball', () => {
  onlyInLongTrials('npm resolves every package anew for each platform')
  test.concurrent.for(PLATFORMS)(
    'on $os with $cpu, it brings the bindings of that platform',
    async ({ os, cpu, libsql }, { expect, onTestFinished }) => {
      const cwd = mkdtempSync(join(tmpdir(), 'uamp-platform-'))
      onTestFinished(() => rmSync(cwd, { recursive: true, force: true }))
      const flags = ['--dry-run', '--prefix', cwd, `--os=${os}`, `--cpu=${cpu}`, '--prefer-offline', '--no-audit', '--no-fund']
      const { code, output } = await run(['npm', 'install', ...flags, fresh.uamp], { cwd })
      expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining('add uamp ') })
      expect(added(output).filter((name) => name.startsWith('@libsql/'))).toEqual(libsql)
    },
  )
})

interface Vite {
  build(config: object): Promise<unknown>
}

/** The one that vitest brings. */
async function vite(): Promise<Vite> {
  const file = createRequire(createRequire(import.meta.url).resolve('vitest/package.json')).resolve('vite')
  return (await import(pathToFileURL(file).href)) as Vite
}

describe('bundled into files of its own, away from all packages', () => {
  const answers = async (file: string): Promise<void> => {
    expect(await run([process.execPath, file], { cwd: typescript })).toMatchObject({
      code: 0,
      output: expect.stringContaining('in one file '),
    })
  }

  test('by esbuild', async () => {
    writeFileSync(join(typescript, 'server.ts'), SERVER)
    const outfile = join(OUT, 'by-esbuild/server.mjs')
    await build({
      absWorkingDir: typescript,
      entryPoints: ['server.ts'],
      bundle: true,
      platform: 'node',
      format: 'esm',
      outfile,
      logLevel: 'error',
    })
    await answers(outfile)
    // What needs a package that is not there says so.
    const { code, output } = await run([process.execPath, outfile], { cwd: typescript, env: { UAMP_DATA: join(OUT, 'by-esbuild/data') } })
    expect({ code, output }).toMatchObject({ code: 1, output: expect.stringContaining('libsql') })
  })

  test('by rolldown', async () => {
    writeFileSync(join(typescript, 'server.ts'), SERVER)
    const bundle = await rolldown({ cwd: typescript, input: 'server.ts', platform: 'node' })
    await bundle.write({ dir: join(OUT, 'by-rolldown'), format: 'esm', entryFileNames: '[name].mjs', chunkFileNames: '[name].mjs' })
    await bundle.close()
    await answers(join(OUT, 'by-rolldown/server.mjs'))
  })

  test('by Vite, for a server', async () => {
    writeFileSync(join(typescript, 'server.ts'), SERVER)
    const { build: buildByVite } = await vite()
    await buildByVite({
      root: typescript,
      configFile: false,
      logLevel: 'error',
      ssr: { noExternal: true },
      build: {
        ssr: 'server.ts',
        outDir: join(OUT, 'by-vite'),
        rolldownOptions: { output: { entryFileNames: '[name].mjs', chunkFileNames: '[name].mjs' } },
      },
    })
    await answers(join(OUT, 'by-vite/server.mjs'))
  })
})

describe('without Node', () => {
  const WEB = `import { createWebApp } from 'uamp/server/web'
import agent from './agent.ts'

const { fetch } = createWebApp(agent, { prefix: '/ai', allowAnonymous: true })
const onListen = ({ port }: { port: number }) => console.log(\`Serving at http://127.0.0.1:\${port}/ai\`)
Deno.serve({ port: 0, hostname: '127.0.0.1', onListen }, fetch)
`

  test('a web handler needs nothing of Node but what Workers have, too', async () => {
    writeFileSync(join(typescript, 'worker.ts'), "export { createWebApp } from 'uamp/server/web'\n")
    const { metafile } = await build({
      absWorkingDir: typescript,
      entryPoints: ['worker.ts'],
      bundle: true,
      platform: 'neutral',
      format: 'esm',
      write: false,
      metafile: true,
      external: ['node:*'],
      logLevel: 'error',
    })
    const outside = Object.values(metafile.outputs).flatMap(({ imports }) => imports.map(({ path }) => path))
    expect(outside.filter((path) => path !== 'node:module')).toEqual([])
  })

  describe('Deno', () => {
    onlyInLongTrials(NO_NODES, hasNodes)

    test('serves it, with streams', async () => {
      writeFileSync(join(typescript, 'web.ts'), WEB)
      const child = new Child(DENO, ['run', '--allow-all', '--no-lock', '--node-modules-dir=manual', 'web.ts'], { cwd: typescript })
      onTestFinished(() => child.stop())
      const [, url = ''] = await child.printed(/ at (http:\S+)/)
      for (const transport of [undefined, 'sse'] as const) {
        const client = connect(url, { ...(transport && { transport }) })
        onTestFinished(() => client.close())
        const session = await client.session()
        expect(await session.say('hello Deno')).toBe('hello Deno ')
      }
      const card = await (await fetch(`${url}/.well-known/agent-card.json`)).text()
      expect(card).toContain(`"${url}/a2a`)
      expect((await fetch(`${url}/nowhere`)).status).toBe(404)
    })
  })
})
