import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { onTestFinished } from 'vitest'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import { text } from '../../../src/core/agent-kit/drafts.ts'
import { createAgentApp, type AgentApp, type AgentAppOptions } from '../../../src/serve/index.ts'

/** Says the first word, and the rest only when it is told to go on: who has the first word by then has a stream. */
function pausing() {
  let go: () => void = () => undefined
  const agent = defineAgent('parrot', async function* (turn) {
    const [first = '', ...rest] = (turn.messages.at(-1)?.content ?? '').split(' ')
    yield text(first)
    if (first === 'wait') await new Promise<void>((resolve) => (go = resolve))
    for (const word of rest) yield text(` ${word}`)
  })
  return { agent, goOn: () => go() }
}

export interface Mounting extends AgentApp {
  readonly logged: string[]
  goOn(): void
}

export function mounting(options: AgentAppOptions = {}): Mounting {
  const { agent, goOn } = pausing()
  const logged: string[] = []
  const app = createAgentApp(agent, { data: 'memory', prefix: '/ai', log: (_, message) => void logged.push(message), ...options })
  onTestFinished(() => app.close({ graceMs: 0 }))
  return { ...app, logged, goOn }
}

type OnUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

/** Somebody's own server on a free port. */
export async function listening(listener: RequestListener, upgrade?: OnUpgrade): Promise<string> {
  const server = createServer(listener)
  if (upgrade) server.on('upgrade', upgrade)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
