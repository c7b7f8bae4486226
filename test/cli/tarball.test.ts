import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, vi } from 'vitest'
import { startUpstream, type Upstream } from '../providers/upstream/index.ts'
import { verifies } from '../support/verifies.ts'
import { EVERY_TRANSPORT } from './every-transport.ts'
import { finished, serving } from './run.ts'

// npm may have to fetch what the package depends on.
vi.setConfig({ testTimeout: 120_000 })

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const KEYS = { OPENAI_API_KEY: 'a-fake-key', ANTHROPIC_API_KEY: 'a-fake-key', GEMINI_API_KEY: 'a-fake-key' }

async function temporary(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'uamp-tarball-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

async function npm(...args: readonly string[]): Promise<void> {
  const { code, stderr } = await finished([...args, '--no-audit', '--no-fund'], { cwd: ROOT, program: ['npm'] })
  if (code !== 0) throw new Error(`npm ${args.join(' ')} ended with ${code}:\n${stderr}`)
}

/** An empty folder in which the package is installed as a user gets it: from its tarball, with what it depends on and nothing else. */
async function installed(): Promise<string> {
  const [packed, folder] = [await temporary(), await temporary()]
  // Without its scripts: they would build anew what other tests are running.
  await npm('pack', '--ignore-scripts', '--pack-destination', packed)
  const [tarball = ''] = await readdir(packed)
  // With the folder by name: npm would else install into whichever folder above has a node_modules.
  await npm('install', '--prefix', folder, '--prefer-offline', join(packed, tarball))
  return folder
}

async function talkOverAll(url: string, { upstream, vendor }: { upstream: Upstream; vendor: string }): Promise<void> {
  for (const [name, talk] of Object.entries(EVERY_TRANSPORT)) {
    const before = upstream.requests.length
    expect(await talk(url, `Hello ${vendor}, over ${name}`), name).toContain(`Hello ${vendor}, over ${name}`)
    expect(upstream.requests.slice(before).map((request) => request.vendor)).toEqual([vendor])
  }
}

verifies(
  ['gateway.package', 'gateway.one-word'],
  'from its tarball, init and serve give an agent on every transport, and another word another provider',
  async () => {
    const upstream = await startUpstream()
    const cwd = await installed()
    const npx = { cwd, program: ['npx', 'uamp'] as const }
    const flags = ['--provider', 'openai', '--model', 'echo', '--base-url', `${upstream.url}/openai/v1`, '--yes']
    expect(await finished(['init', ...flags], npx)).toMatchObject({ code: 0 })
    const { url, cli } = await serving([], { ...npx, env: KEYS })
    await talkOverAll(url, { upstream, vendor: 'responses' })

    const file = join(cwd, 'uamp.config.yaml')
    const config = await readFile(file, 'utf8')
    for (const vendor of ['anthropic', 'google']) {
      await writeFile(file, config.replaceAll('openai', vendor))
      await cli.prints(new RegExp(`(was read again: assistant changed[^]*){${vendor === 'anthropic' ? 1 : 2}}`))
      await talkOverAll(url, { upstream, vendor })
    }
    cli.signal('SIGTERM')
    await cli.exit()
    expect(cli.stdout).toContain('Stopping')
    expect(await readdir(cwd)).toContain('.uamp')
  },
)
