/** Servers of the official SDK's older generations, with one agent of their own words. */
import { DefaultRequestHandler as Handler02, InMemoryTaskStore as Tasks02, JsonRpcTransportHandler as JsonRpc02 } from 'a2a02/server'
import type { AgentCard } from 'a2a03'
import {
  DefaultRequestHandler as Handler03,
  InMemoryTaskStore as Tasks03,
  JsonRpcTransportHandler as JsonRpc03,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from 'a2a03/server'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { onTestFinished } from 'vitest'

/** Counts, asks back, or repeats what it is told. */
class Counter implements AgentExecutor {
  readonly cancelled: Promise<void>
  readonly #running = new Map<string, AbortController>()
  #cancel: () => void = () => undefined

  constructor() {
    this.cancelled = new Promise((resolve) => (this.#cancel = resolve))
  }

  async execute({ userMessage, taskId, contextId, task }: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const stop = new AbortController()
    this.#running.set(taskId, stop)
    const ids = { taskId, contextId }
    const status = (state: 'working' | 'completed' | 'canceled' | 'input-required', text?: string): void => {
      const parts = [{ kind: 'text' as const, text: text ?? '' }]
      const message =
        text === undefined ? {} : { message: { kind: 'message' as const, messageId: randomUUID(), role: 'agent' as const, parts, ...ids } }
      bus.publish({ kind: 'status-update', ...ids, status: { state, ...message }, final: state !== 'working' })
    }
    if (!task) bus.publish({ kind: 'task', id: taskId, contextId, status: { state: 'submitted' }, history: [userMessage] })
    status('working')
    const [first = '', ...rest] = userMessage.parts
      .map((part) => (part.kind === 'text' ? part.text : ''))
      .join(' ')
      .split(' ')
    if (first === 'ask') status('input-required', 'What shall I say?')
    else {
      const words = first === 'count' ? Array.from({ length: Number(rest[0]) }, (_, n) => `${n + 1}`) : ['You', 'said:', first, ...rest]
      const artifactId = randomUUID()
      for (const [index, word] of words.entries()) {
        if (first === 'count') await sleep(10)
        if (stop.signal.aborted) break
        const parts = [{ kind: 'text' as const, text: index === 0 ? word : ` ${word}` }]
        bus.publish({ kind: 'artifact-update', ...ids, artifact: { artifactId, parts }, append: index > 0 })
      }
      status(stop.signal.aborted ? 'canceled' : 'completed')
      if (stop.signal.aborted) this.#cancel()
    }
    bus.finished()
  }

  async cancelTask(taskId: string): Promise<void> {
    this.#running.get(taskId)?.abort()
  }
}

const cardOf = (url: string, protocolVersion: string): AgentCard => ({
  name: 'Counter',
  description: 'Counts',
  protocolVersion,
  version: '1.0.0',
  url: `${url}/`,
  capabilities: { streaming: true },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [],
})

/** What both transport handlers are: one answer, or a stream of them. */
type Handle = (body: string) => Promise<unknown>

/** `via`: where its card says that it is. */
export async function officialServer(
  version: '0.3.14' | '0.2.5',
  { via }: { readonly via?: () => string } = {},
): Promise<{ url: string; cancelled: Promise<void> }> {
  const counter = new Counter()
  let handle: Handle = () => Promise.reject(new Error('not ready'))
  let card: object = {}
  const path = version === '0.3.14' ? '/.well-known/agent-card.json' : '/.well-known/agent.json'
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      if (request.method === 'POST') void handle(body).then((answer) => write(response, answer))
      else if (request.url === path) response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(card))
      else response.writeHead(404).end()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  if (version === '0.3.14') {
    const own = cardOf(via?.() ?? url, '0.3.0')
    const rpc = new JsonRpc03(new Handler03(own, new Tasks03(), counter))
    card = own
    handle = (body) => rpc.handle(body)
  } else {
    const own = cardOf(via?.() ?? url, '0.2.5')
    const rpc = new JsonRpc02(new Handler02(own as never, new Tasks02(), counter as never))
    card = own
    handle = (body) => rpc.handle(body)
  }
  return { url, cancelled: counter.cancelled }
}

async function write(response: ServerResponse, answer: unknown): Promise<void> {
  if (typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer) {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for await (const event of answer as AsyncIterable<unknown>) response.write(`data: ${JSON.stringify(event)}\n\n`)
    response.end()
  } else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
}
