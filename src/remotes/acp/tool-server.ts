import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as z from 'zod/mini'
import type { ToolCall, ToolResult } from '../../protocol/content.ts'
import { Slot } from '../../protocol/json.ts'
import type { ToolDefinition } from '../../protocol/tools.ts'
import { toBlock } from '../../wire/acp/blocks.ts'
import { errorText, notificationText, parseParams, readMessage, resultText, RPC, RpcError, type RpcMessage } from '../../wire/json-rpc.ts'
import { SSE_HEADERS, SSE_HEARTBEAT, sseLine } from '../../wire/sse.ts'
import { BRIDGE } from './tool-bridge.ts'

/** Sessions that may have tools. Beyond them, the one that was used longest ago loses them, and its next turn gets a new session. */
const DOORS = 1024
/** Connections of all sessions; bytes of one message; calls that one session has at a time, and streams that it listens to. */
const CONNECTIONS = 512
const MESSAGE = 4 * 1024 * 1024
const CALLS = 32
const STREAMS = 4
/** How long a request may take to arrive, and how often a waiting one is told that we are there. */
const ARRIVE_MS = 30_000
const BEAT_MS = 15_000
/** Versions of MCP whose words for tools are the same. */
const VERSIONS = ['2025-06-18', '2025-03-26', '2024-11-05', '2025-11-25']

const Initialize = z.object({ protocolVersion: z.optional(z.string()) })
const Call = z.object({ name: z.string(), arguments: z.nullish(Slot) })

/** Runs a tool of our client. */
export type RunTool = (call: ToolCall) => Promise<ToolResult>

/**
 * An MCP server on this machine, by which an agent calls tools of our clients. Each session of the agent has a door of its own, with
 * its own secret: only the agent's program is told it, so nobody else on this machine can call a tool.
 */
export class ToolServer {
  readonly #server: Server
  readonly #doors = new Map<string, Door>()

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy())
    })
    this.#server.maxConnections = CONNECTIONS
    this.#server.requestTimeout = ARRIVE_MS
    this.#server.unref()
  }

  static async open(): Promise<ToolServer> {
    const opened = new ToolServer()
    await new Promise<void>((resolve, reject) => opened.#server.once('error', reject).listen(0, '127.0.0.1', resolve))
    return opened
  }

  /** A new door. `overHttp`: the agent speaks MCP over HTTP; every agent can start a program. */
  door(overHttp: boolean): Door {
    const secret = randomBytes(32).toString('base64url')
    const { port } = this.#server.address() as AddressInfo
    const door = new Door(reachedBy(`http://127.0.0.1:${port}/mcp`, secret, overHttp), () => this.#doors.delete(hashOf(secret)))
    for (const [key, oldest] of this.#doors) {
      if (this.#doors.size < DOORS) break
      if (oldest.run) continue
      this.#doors.delete(key)
      oldest.close()
    }
    this.#doors.set(hashOf(secret), door)
    return door
  }

  close(): void {
    for (const door of this.#doors.values()) door.close()
    this.#server.close()
    this.#server.closeAllConnections()
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { headers, method, url } = request
    // Found by its hash, so that the time that it takes tells nothing about a secret.
    const key = hashOf(/^Bearer (.+)$/i.exec(headers.authorization ?? '')?.[1] ?? '')
    const door = this.#doors.get(key)
    if (!door || headers.origin !== undefined) return refuse(response, 401)
    if (url !== '/mcp') return refuse(response, 404)
    this.#doors.delete(key)
    this.#doors.set(key, door)
    if (method === 'GET') return door.listen(response)
    if (method !== 'POST') return refuse(response, 405)
    const text = await bodyOf(request)
    if (text === undefined) return refuse(response, 413)
    const message = readMessage(text)
    if (message.kind === 'invalid') return json(response, errorText(message.id, message.error))
    if (message.kind !== 'request') return refuse(response, 202)
    const answer = door.answer(message)
    if (message.method !== 'tools/call' || !headers.accept?.includes('text/event-stream')) return json(response, await answer)
    // People may have to answer: the agent must not take the connection for dead.
    stream(response)
    response.end(sseLine(await answer))
  }
}

/** The tools of one session of the agent. */
export class Door {
  /** As `session/new` names it. */
  readonly server: Slot
  /** Runs a tool in the turn that goes on. */
  run: RunTool | undefined
  closed = false
  readonly #onClose: () => void
  readonly #streams = new Set<ServerResponse>()
  #tools: readonly ToolDefinition[] = []
  #running = 0

  constructor(server: Slot, onClose: () => void) {
    this.server = server
    this.#onClose = onClose
  }

  /** The tools from now on. The agent is told if they are others. */
  offer(tools: readonly ToolDefinition[]): void {
    const changed = JSON.stringify(tools) !== JSON.stringify(this.#tools)
    this.#tools = tools
    if (changed) for (const each of this.#streams) each.write(sseLine(notificationText('notifications/tools/list_changed', {})))
  }

  listen(response: ServerResponse): void {
    if (this.#streams.size >= STREAMS) return refuse(response, 429)
    stream(response)
    this.#streams.add(response)
    response.once('close', () => this.#streams.delete(response))
  }

  close(): void {
    this.closed = true
    this.#onClose()
    for (const each of this.#streams) each.end()
  }

  async answer({ id, method, params }: RpcMessage & { kind: 'request' }): Promise<string> {
    try {
      return resultText(id, await this.#handle(method, params))
    } catch (thrown) {
      return errorText(id, thrown instanceof RpcError ? thrown : new RpcError(RPC.internal, 'The tool could not be called'))
    }
  }

  async #handle(method: string, params: unknown): Promise<Slot> {
    switch (method) {
      case 'initialize': {
        const { protocolVersion = '' } = parseParams(Initialize, params)
        const version = VERSIONS.includes(protocolVersion) ? protocolVersion : VERSIONS[0]
        return { protocolVersion: version, capabilities: { tools: { listChanged: true } }, serverInfo: { name: 'uamp', version: '1.0' } }
      }
      case 'ping':
        return {}
      case 'tools/list':
        return { tools: this.#tools.map(shown) }
      case 'tools/call':
        return this.#call(parseParams(Call, params))
      default:
        throw new RpcError(RPC.methodNotFound, `There is no method "${method.slice(0, 100)}"`)
    }
  }

  async #call({ name, arguments: args }: z.infer<typeof Call>): Promise<Slot> {
    if (!this.#tools.some((tool) => tool.function.name === name)) throw new RpcError(RPC.invalidParams, `There is no tool "${name}"`)
    if (!this.run) return failed('No prompt runs that could ask for it')
    if (this.#running >= CALLS) return failed(`${CALLS} calls run already`)
    this.#running++
    try {
      const {
        result,
        is_error,
        content_items = [],
      } = await this.run({ id: `call_${randomUUID()}`, name, arguments: JSON.stringify(args ?? {}) })
      const blocks = content_items.flatMap((item) => toBlock(item) ?? [])
      return { content: [...(result === '' ? [] : [{ type: 'text', text: result }]), ...blocks], isError: is_error ?? false }
    } finally {
      this.#running--
    }
  }
}

function shown({ function: { name, description, parameters } }: ToolDefinition): Slot {
  return { name, ...(description !== undefined && { description }), inputSchema: { ...parameters, type: 'object' } }
}

function failed(text: string): Slot {
  return { content: [{ type: 'text', text }], isError: true }
}

/** ACP, MCP Servers. The secret is in no argument, which others could read in the list of processes. */
function reachedBy(url: string, secret: string, overHttp: boolean): Slot {
  if (overHttp) return { type: 'http', name: 'client', url, headers: [{ name: 'Authorization', value: `Bearer ${secret}` }] }
  const env = [
    { name: 'UAMP_TOOLS_URL', value: url },
    { name: 'UAMP_TOOLS_SECRET', value: secret },
  ]
  return { name: 'client', command: process.execPath, args: ['-e', BRIDGE], env }
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

function refuse(response: ServerResponse, status: number): void {
  response.writeHead(status).end()
}

function json(response: ServerResponse, text: string): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(text)
}

function stream(response: ServerResponse): void {
  response.writeHead(200, SSE_HEADERS)
  response.flushHeaders()
  const beat = setInterval(() => response.write(SSE_HEARTBEAT), BEAT_MS).unref()
  response.once('close', () => clearInterval(beat))
}

/** `undefined`: it is too long. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > MESSAGE) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
