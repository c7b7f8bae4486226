import { readdir, readFile, readlink } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { startProxy, type Proxy } from '../../client/proxy.ts'
import { Cli, project, serving, type Serving } from '../../cli/run.ts'
import { overWebSocket, type Wire } from '../../support/wire.ts'

const LAPTOP = 'laptop-0123456789abcdef'
export const CALLER = 'caller-0123456789abcdef'
export const OTHER = 'other-0123456789abcdef'

const AGENT = await readFile(fileURLToPath(new URL('agent.mjs', import.meta.url)), 'utf8')
const LOCAL = `import { defineAgent } from 'uamp'
export default defineAgent('local', async function* () {
  yield 'I live here'
})`

const HOST = `agents: [./local.mjs]
tokens: { laptop: ${LAPTOP}, caller: ${CALLER}, other: ${OTHER} }
grants: { laptop: ['host:counter'], other: ['host:counter'] }
`

/** A folder for a host, with its config and more lines of it. */
export function hostFolder(more = ''): Promise<string> {
  return project({ 'local.mjs': LOCAL, 'uamp.config.yaml': HOST + more })
}

/** `uamp serve`, which hosts agents of `laptop` and of `other`. Callers need no token, as clients of A2A may have none. */
export async function startHost(more = ''): Promise<Serving> {
  return serving(['--allow-anonymous', '--log-level', 'error'], { cwd: await hostFolder(more) })
}

/** `uamp connect`, once the host offers its agent. */
export async function connecting(url: string, { token = LAPTOP, args = [] as readonly string[] } = {}): Promise<Connecting> {
  const cwd = await project({ 'agent.mjs': AGENT })
  const cli = new Connecting(['connect', `${url.replace('http', 'ws')}/ws`, 'agent.mjs', ...args], { cwd, env: { UAMP_TOKEN: token } })
  await cli.prints(/counter is at (http\S+)/)
  return cli
}

export class Connecting extends Cli {
  /** Lets the agent go on beyond this number. */
  pass(number: number): void {
    this.write(`${number}\n`)
  }

  /** Waits until the agent is at this number. */
  async at(number: number): Promise<void> {
    await this.prints(new RegExp(`^at ${number}$`, 'm'))
  }

  /** What the agent was asked, in order. */
  get runs(): string[] {
    return [...this.stdout.matchAll(/^run (.*) for .*\.$/gm)].map(([, asked = '']) => asked)
  }
}

/** A network between a host and what connects to it. */
export async function network({ url }: Serving): Promise<Proxy> {
  const proxy = await startProxy(Number(new URL(url).port))
  onTestFinished(() => proxy.close())
  return proxy
}

/** A client of UAMP events that has asked. */
export async function asked(url: string, text: string): Promise<Wire & { readonly session: string }> {
  const wire = await overWebSocket(url, { token: CALLER })
  onTestFinished(() => wire.close())
  const session = await wire.open({ agent: 'counter' })
  await wire.send({ type: 'input.text', text })
  await wire.send({ type: 'response.create' })
  return { ...wire, session }
}

/** What the agent says to `count`. */
export function counted(last: number): string {
  return Array.from({ length: last }, (_, index) => index + 1).join(' ')
}

/** The sockets of a process that wait for connections, as the kernel lists them. */
export async function listening(pid: number): Promise<string[]> {
  const links = await Promise.all((await readdir(`/proc/${pid}/fd`)).map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')))
  const own = new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []))
  const tables = await Promise.all(['tcp', 'tcp6'].map((name) => readFile(`/proc/${pid}/net/${name}`, 'utf8').catch(() => '')))
  return tables
    .flatMap((table) => table.split('\n').slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode]) => state === LISTEN && own.has(inode ?? ''))
    .map(([, address = '']) => address)
}

/** The state of a socket that listens, in Linux's table. */
const LISTEN = '0A'
