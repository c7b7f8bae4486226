import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serve, type RunningServer } from '../../src/serve/index.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import { remoteA2a } from '../../src/remotes/a2a/index.ts'
import { remoteAcp } from '../../src/remotes/acp/index.ts'
import { remoteAgUi } from '../../src/remotes/ag-ui/index.ts'
import { remoteCompletions } from '../../src/remotes/completions/index.ts'
import { remoteEvents } from '../../src/remotes/events/index.ts'
import { Endings, farAgent } from './far-agent.ts'

export interface Remote {
  readonly name: string
  /** The agent's name here. */
  readonly agent: string
}

export const REMOTES: readonly Remote[] = [
  { name: 'UAMP events', agent: 'by-events' },
  { name: 'Chat Completions', agent: 'by-completions' },
  { name: 'A2A', agent: 'by-a2a' },
  { name: 'AG-UI', agent: 'by-ag-ui' },
  { name: 'ACP', agent: 'by-acp' },
]

export interface World {
  readonly url: string
  /** Which answers without end have ended, far away. */
  readonly endings: Endings
  close(): Promise<void>
}

/** A server far away, a program, and a server here with the way to them by every kind of remote. */
export async function startWorld(): Promise<World> {
  const endings = new Endings()
  const folder = await mkdtemp(join(tmpdir(), 'uamp-matrix-'))
  const there = await quiet([farAgent(endings)])
  const program = remoteAcp({
    name: 'by-acp',
    command: process.execPath,
    args: [fileURLToPath(new URL('acp-agent.js', import.meta.url))],
    folder,
    log: (_, __, fields) => {
      for (const [, tag = ''] of String(fields?.['text'] ?? '').matchAll(/^ended (.+)$/gm)) endings.end(tag)
    },
  })
  const here = await quiet([
    remoteEvents({ name: 'by-events', url: there.url }),
    remoteCompletions({ name: 'by-completions', url: `${there.url}/v1`, model: 'far' }),
    remoteA2a({ name: 'by-a2a', url: there.url }),
    remoteAgUi({ name: 'by-ag-ui', url: `${there.url}/ag-ui` }),
    program,
  ])
  return {
    url: here.url,
    endings,
    async close() {
      await here.close({ graceMs: 0 })
      await program.close()
      await there.close({ graceMs: 0 })
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function quiet(agents: readonly AgentPort[]): Promise<RunningServer> {
  return serve(agents, { port: 0, data: 'memory', log: () => undefined })
}
