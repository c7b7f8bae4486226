import type { Logger } from '../core/ports/transport.ts'
import { toolDefinition } from '../core/tools/tool.ts'
import { UampError } from '../protocol/errors.ts'
import { fieldsOf, isRecord, recordsIn, uampIn, type Slot } from '../protocol/json.ts'
import { leftOutNotice, resultBy, TOOL_METHOD, type LeftOut, type McpTools } from '../transports/acp/tools.ts'
import { McpServer } from '../transports/acp/schema.ts'
import type { ConnectTools } from '../transports/acp/index.ts'
import { errorText, isId, notificationText, readMessage, resultText, RPC, RpcError, type RpcId } from '../wire/json-rpc.ts'

/** Sessions whose servers run here, and calls that run at a time. More are refused. */
const SESSIONS = 64
const CALLS = 64

/** Messages of the IDE that this has to see. Some libraries escape slashes. */
const SEEN = /"(?:initialize|session\\?\/(?:new|load|resume|close|delete))"/

interface Equipped {
  readonly servers: readonly McpTools[]
  readonly leftOut: readonly LeftOut[]
}

export interface RelayToolsOptions {
  readonly connectTools: ConnectTools
  readonly log: Logger
  /** Sends a message to the agent, and to the IDE. */
  readonly toAgent: (text: string) => void
  readonly toIde: (text: string) => void
}

/**
 * The MCP servers of an IDE, for an agent elsewhere. The agent's server starts no programs and does not reach this network, so this
 * connects to them here, beside the IDE, and the agent gets their tools: those of `_meta.uamp.tools`, which it calls by `_uamp/tool`.
 * For an agent that does not know that, messages pass unchanged.
 */
export class RelayTools {
  readonly #options: RelayToolsOptions
  readonly #closed = new AbortController()
  /** Servers by session, and those whose session has no name yet by the request that opens it. */
  readonly #sessions = new Map<string, Equipped>()
  readonly #opening = new Map<RpcId, Equipped & { readonly session: unknown }>()
  /** Calls that run, by the ids of the agent's requests. */
  readonly #running = new Map<RpcId, AbortController>()
  #starting = 0
  /** Undefined until the agent has answered `initialize`. */
  #knows: boolean | undefined
  #notices = false
  #last = 0

  constructor(options: RelayToolsOptions) {
    this.#options = options
  }

  /** A message of the IDE. It is sent on when its servers have started; nothing else waits for that. */
  outgoing(line: string): void {
    const { toAgent } = this.#options
    const message = SEEN.test(line) ? readMessage(line) : undefined
    if (message?.kind !== 'request') return toAgent(line)
    const { id, method } = message
    const params = fieldsOf(message.params)
    if (method === 'initialize') this.#notices = isRecord(fieldsOf(fieldsOf(params['clientCapabilities'])['session'])['notices'])
    if (method === 'session/close' || method === 'session/delete') void this.#letGo(params['sessionId'])
    const given = recordsIn(params['mcpServers'])
    if (!this.#knows || given.length === 0 || !/^session\/(new|load|resume)$/.test(method)) return toAgent(line)
    void this.#equip(given).then((equipped) => {
      this.#opening.set(id, { ...equipped, session: params['sessionId'] })
      const _meta = fieldsOf(params['_meta'])
      const tools = this.#offered(equipped)
      const meta = { ..._meta, uamp: { ...uampIn(_meta), tools } }
      toAgent(JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, mcpServers: [], _meta: meta } }))
    })
  }

  /** A message of the agent. */
  incoming(text: string): void {
    const { toIde } = this.#options
    if (this.#knows === undefined) this.#learn(text)
    // Most messages are pieces of an answer, and go on unread.
    else if (this.#opening.size > 0 || (this.#sessions.size > 0 && /"_uamp\/tool"|"\$\/cancel_request"/.test(text))) {
      const message = readMessage(text)
      if (message.kind === 'request' && message.method === TOOL_METHOD) return void this.#call(message.id, fieldsOf(message.params))
      if (message.kind === 'notification' && message.method === '$/cancel_request') {
        const { requestId } = fieldsOf(message.params)
        const call = isId(requestId) ? this.#running.get(requestId) : undefined
        if (call) return call.abort()
      }
      if (message.kind === 'response') {
        toIde(text)
        return this.#opened(message.id, message.result)
      }
    }
    toIde(text)
  }

  async close(): Promise<void> {
    this.#closed.abort(new UampError('cancelled', 'The IDE has gone'))
    for (const call of this.#running.values()) call.abort()
    const all = [...this.#sessions.values(), ...this.#opening.values()]
    await Promise.all(all.map(closeServers))
  }

  #learn(text: string): void {
    const message = readMessage(text)
    if (message.kind !== 'response') return
    const { agentCapabilities } = fieldsOf(message.result)
    if (isRecord(agentCapabilities)) this.#knows = uampIn(fieldsOf(agentCapabilities['_meta']))['tools'] === TOOL_METHOD
  }

  async #equip(given: readonly Slot[]): Promise<Equipped> {
    const { connectTools, log } = this.#options
    const { signal } = this.#closed
    const servers: McpTools[] = []
    const leftOut: LeftOut[] = []
    const isFull = this.#sessions.size + this.#starting >= SESSIONS
    this.#starting++
    const each = given.map(async (slot) => {
      const { data: server } = McpServer.safeParse(slot)
      try {
        if (!server || server.type === 'sse') throw new UampError('not_supported', 'Only programs and HTTP are supported')
        if (isFull) throw new UampError('rate_limited', `${SESSIONS} sessions have servers already: close some`)
        servers.push(await connectTools(server, { log, local: true, outbound: undefined, signal }))
      } catch (error) {
        leftOut.push({ name: String(slot['name']), reason: UampError.from(error).message })
        log('warn', 'Left out an MCP server of the IDE', { server: slot['name'], error })
      }
    })
    await Promise.all(each)
    this.#starting--
    const equipped = { servers, leftOut }
    if (signal.aborted) await closeServers(equipped)
    return equipped
  }

  /** The tools, each with the number of its server: sessions may have servers of the same name. */
  #offered({ servers }: Equipped): Slot[] {
    return servers.flatMap((server) => {
      const number = `${++this.#last}`
      this.#numbers.set(server, number)
      return server.tools.map((tool) => ({ server: number, ...toolDefinition(tool).function }))
    })
  }

  readonly #numbers = new WeakMap<McpTools, string>()

  #opened(id: RpcId, result: unknown): void {
    const equipped = this.#opening.get(id)
    if (!equipped) return
    this.#opening.delete(id)
    const session = equipped.session ?? fieldsOf(result)['sessionId']
    if (result === undefined || typeof session !== 'string') return void closeServers(equipped)
    void this.#letGo(session)
    this.#sessions.set(session, equipped)
    if (!this.#notices) return
    for (const update of equipped.leftOut.map(leftOutNotice))
      this.#options.toIde(notificationText('session/update', { sessionId: session, update }))
  }

  async #call(id: RpcId, { sessionId, server, name, arguments: args }: Slot): Promise<void> {
    const { toAgent } = this.#options
    const { servers = [] } = this.#sessions.get(String(sessionId)) ?? {}
    const tool = servers.find((each) => this.#numbers.get(each) === server)?.tools.find((each) => each.name === name)
    if (!tool) return toAgent(errorText(id, new RpcError(RPC.invalidParams, `There is no tool "${String(name)}"`)))
    if (this.#running.size >= CALLS) return toAgent(errorText(id, new RpcError(-32005, `${CALLS} calls run already`)))
    const running = new AbortController()
    this.#running.set(id, running)
    const call = { id: String(id), name: tool.name, arguments: JSON.stringify(args ?? {}) }
    const { result, content_items, is_error } = await resultBy(tool, call, {
      callId: call.id,
      signal: running.signal,
      progress: () => undefined,
      trace: undefined,
    })
    this.#running.delete(id)
    toAgent(resultText(id, { result, content_items, is_error }))
  }

  async #letGo(session: unknown): Promise<void> {
    const equipped = this.#sessions.get(String(session))
    this.#sessions.delete(String(session))
    if (equipped) await closeServers(equipped)
  }
}

async function closeServers({ servers }: Pick<Equipped, 'servers'>): Promise<void> {
  await Promise.allSettled(servers.map((server) => server.close()))
}
