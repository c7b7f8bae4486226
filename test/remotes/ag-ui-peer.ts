import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { remoteAgUi } from '../../src/remotes/ag-ui/index.ts'
import { startServer } from '../support/server.ts'
import { overWebSocket } from '../support/wire.ts'

interface Input {
  readonly threadId: string
  readonly runId: string
  readonly messages: readonly { readonly id: string; readonly role: string; readonly [field: string]: unknown }[]
  readonly resume?: readonly { readonly interruptId: string; readonly status: string; readonly payload?: unknown }[]
  readonly [field: string]: unknown
}

/** The events of a run, also on a connection that stays open, on which more may be said again and again; a refusal; something else; or `hang`: it begins and never ends. */
export type Answer =
  | readonly object[]
  | { readonly stays: readonly object[]; readonly again?: object }
  | { readonly status: number; readonly body: object }
  | { readonly type: string; readonly text: string }
  | 'hang'

/** An AG-UI agent on a small server of its own, that answers its runs one after the other. */
export async function peer(...answers: readonly Answer[]) {
  const inputs: Input[] = []
  let left: () => void = () => undefined
  const gone = new Promise<void>((resolve) => (left = resolve))
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    request.on('end', () => {
      const input = JSON.parse(text) as Input
      const answer = answers[inputs.length] ?? []
      inputs.push(input)
      if (typeof answer === 'object' && 'status' in answer) {
        response.writeHead(answer.status, { 'content-type': 'application/json' })
        return response.end(JSON.stringify(answer.body))
      }
      if (typeof answer === 'object' && 'type' in answer) {
        return response.writeHead(200, { 'content-type': answer.type }).end(answer.text)
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.once('close', () => left())
      const ids = { threadId: input.threadId, runId: input.runId }
      response.write(`: hello\n\ndata: ${JSON.stringify({ type: 'RUN_STARTED', ...ids })}\n\n`)
      if (answer === 'hang') return undefined
      const stays = 'stays' in answer
      for (const event of stays ? answer.stays : answer) response.write(`data: ${JSON.stringify({ ...ids, ...event })}\n\n`)
      if (!stays) return response.end()
      const again = answer.again && setInterval(() => response.write(`data: ${JSON.stringify(answer.again)}\n\n`), 20)
      return response.once('close', () => clearInterval(again))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/agent`
  return { url, inputs, gone }
}

/** The peer behind a server of ours, and a client of that. */
export async function behind(url: string, create: object = {}) {
  const here = await startServer(remoteAgUi({ name: 'far', url, token: 'secret' }))
  const wire = await overWebSocket(here.url)
  await wire.open(create)
  return { wire, here }
}

export const done = { type: 'RUN_FINISHED' }
export const said = (messageId: string, ...deltas: string[]) => [
  { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' },
  ...deltas.map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta })),
  { type: 'TEXT_MESSAGE_END', messageId },
]
