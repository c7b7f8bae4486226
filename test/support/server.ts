import { onTestFinished } from 'vitest'
import { serve, type ServeOptions } from '../../src/serve/index.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'

/** A whole server on a free port, gone when the test is. */
export async function startServer(agents: AgentPort | readonly AgentPort[], options: Partial<ServeOptions> = {}) {
  const logged: { level: string; message: string; fields?: Readonly<Record<string, unknown>> | undefined }[] = []
  const server = await serve(agents, {
    port: 0,
    data: 'memory',
    log: (level, message, fields) => void logged.push({ level, message, fields }),
    ...options,
  })
  onTestFinished(() => server.close({ graceMs: 0 }))
  return { ...server, logged }
}

/** What a server says that it holds in memory. */
export async function heldBytes(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(/^uamp_held_bytes (\d+)/m.exec(text)?.[1])
}
