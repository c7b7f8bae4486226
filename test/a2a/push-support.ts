import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'

/** Whatever came over the wire. */
export type Wire = any // eslint-disable-line

interface Delivery {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Wire
}

/** Answers one delivery, by a status or by itself. `count`: the first is 1. */
type Respond = (delivery: Delivery, count: number, response: ServerResponse) => number | void | Promise<number | void>

/** A webhook on this machine. */
export async function webhook(respond: Respond = () => 200) {
  const got: Delivery[] = []
  const waiting: { readonly fits: () => boolean; readonly resolve: () => void }[] = []
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const delivery = { path: request.url ?? '', headers: request.headers, body: JSON.parse(body) as Wire }
    got.push(delivery)
    for (const { fits, resolve } of waiting) if (fits()) resolve()
    const status = await respond(delivery, got.length, response)
    if (status !== undefined) response.writeHead(status).end()
  }
  const server = createServer((request, response) => void take(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const until = (fits: () => boolean): Promise<void> =>
    fits() ? Promise.resolve() : new Promise((resolve) => waiting.push({ fits, resolve }))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    got,
    until,
    /** Everything up to the end of a task. */
    untilEnd: () => until(() => got.some(({ body }) => stateOf(body) === 'completed')),
  }
}

/** The state that a delivery tells, of whichever generation: `completed`. */
export function stateOf(body: Wire): string | undefined {
  const state: string | undefined = (body.statusUpdate ?? body.task ?? body).status?.state
  return state
    ?.replace(/^TASK_STATE_/, '')
    .toLowerCase()
    .replace('_', '-')
}

/** What a delivery is of: `statusUpdate`, `artifactUpdate`, `task`. */
export const kindOf = (body: Wire): string => (body.kind as string | undefined) ?? Object.keys(body as object).join()

/** JSON-RPC, of 1.0 unless its method has a slash. */
export function caller(url: string, token?: string) {
  return async (method: string, params: object): Promise<Wire> => {
    const response = await fetch(`${url}/a2a`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(!method.includes('/') && { 'a2a-version': '1.0' }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    return response.json()
  }
}

/** A promise and what fulfils it. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open!: () => void
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open }
}

/** Says something, and is done when it may be. */
export function patient(opened: Promise<void> = Promise.resolve()): AgentPort {
  return defineAgent('patient', async function* ({ signal }) {
    yield text('one')
    await Promise.race([opened, new Promise((resolve) => signal.addEventListener('abort', resolve))])
    yield text(' two')
  })
}

export const message = (words = 'Hello') => ({ messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: words }] })
