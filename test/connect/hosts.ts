import { connect as dial, createServer, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import { connectAgents, type ConnectAgentsOptions, type ServeOptions } from '../../src/serve/index.ts'
import { startServer } from '../support/server.ts'

export const LAPTOP = 'laptop-0123456789abcdef'
export const OTHER = 'other-0123456789abcdef'
export const CALLER = 'caller-0123456789abcdef'

/** A server that hosts agents of `laptop` and of `other`, and has one agent of its own. */
export async function startHost(local: readonly AgentPort[], options: Partial<ServeOptions> = {}) {
  return startServer(local, {
    tokens: { laptop: LAPTOP, other: OTHER, caller: CALLER },
    grants: { laptop: ['host:counter', 'host:mirror', 'host:team.*', 'host:local'], other: ['host:counter', 'host:mirror'] },
    ...options,
  })
}

/** Connects agents, and disconnects them when the test ends. */
export async function host(url: string, agents: AgentPort | readonly AgentPort[], options: ConnectAgentsOptions = {}) {
  const statuses: string[] = []
  const logged: string[] = []
  const connected = await connectAgents(url, agents, {
    token: LAPTOP,
    log: (_, message) => void logged.push(message),
    reconnect: { minMs: 20, maxMs: 100 },
    onStatus: (status) => void statuses.push(status),
    ...options,
  })
  onTestFinished(() => connected.close({ graceMs: 0 }))
  return { ...connected, statuses, logged }
}

/** A network between two ends that can be cut, and stopped. */
export async function network(url: string) {
  const { port } = new URL(url)
  const links = new Set<Socket>()
  let isDown = false
  let isFrozen = false
  const server = createServer((near) => {
    if (isDown) return void near.destroy()
    const far = dial(Number(port), '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      links.add(from)
      from.on('data', (bytes) => isFrozen || to.write(bytes))
      from.on('error', () => undefined)
      from.on('close', () => {
        links.delete(from)
        to.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const cut = (): void => {
    for (const link of links) link.destroy()
  }
  onTestFinished(() => {
    cut()
    server.close()
  })
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/ws`,
    /** All that is sent is lost, and nobody knows. */
    freeze: () => void (isFrozen = true),
    cut: () => {
      cut()
      isFrozen = false
    },
    down: () => {
      isDown = true
      cut()
    },
    up: () => void (isDown = false),
    get links() {
      return links.size
    },
  }
}

/** Asks over Completions. */
export async function complete(
  url: string,
  agent: string,
  body: { prompt: string; stream?: boolean; token?: string; messages?: readonly object[] },
) {
  const { prompt, token = CALLER, ...rest } = body
  return fetch(`${url}/agents/${agent}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ model: agent, messages: [{ role: 'user', content: prompt }], ...rest }),
  })
}

export async function answerOf(response: Response): Promise<string> {
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] }
  return choices[0]?.message.content ?? ''
}

/** What the `counter` agent says. */
export function counted(to: number): string {
  return Array.from({ length: to }, (_, index) => index + 1).join(' ')
}
