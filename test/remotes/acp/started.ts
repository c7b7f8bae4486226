import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { remoteAcp, type RemoteAcpOptions } from '../../../src/remotes/acp/index.ts'
import { startServer } from '../../support/server.ts'
import { textOf } from '../../support/talk.ts'
import { overWebSocket, type Heard } from '../../support/wire.ts'

export const AGENT = fileURLToPath(new URL('agent.js', import.meta.url))

export async function place(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'uamp-acp-remote-')))
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

/** The agent of this folder, behind a server and a client of it. */
export async function started(options: Partial<RemoteAcpOptions> = {}) {
  const outside = await place()
  const folder = join(outside, 'project')
  await mkdir(folder)
  const agent = remoteAcp({ name: 'coder', command: process.execPath, args: [AGENT], folder, ...options })
  const server = await startServer(agent)
  onTestFinished(() => agent.close())
  const wire = await overWebSocket(server.url)
  await wire.open()
  return { agent, server, folder, outside, wire }
}

/** What it says is JSON. */
export const told = (events: readonly Heard[]): any => JSON.parse(textOf(events)) as unknown // eslint-disable-line
export const deltas = (events: readonly Heard[], type: string): Heard[] =>
  events.flatMap((event) => (event['delta']?.type === type ? [event['delta'] as Heard] : []))

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    // A process that nobody has waited for is a zombie, and answers too. Its other threads may be there longer, with its files open.
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')) || readdirSync(`/proc/${pid}/task`).length > 1
  } catch {
    return false
  }
}
