/** Every method of ACP, over HTTP and over its sockets. */
import { sseParser } from '../../../src/wire/sse-parse.ts'
import { decisionIn, decisionOf } from './forms.ts'
import { Line, type Heard } from './line.ts'
import { decisionFor, rowFor, type Asked, type Asks, type Caller, type Row } from './rule.ts'
import { INITIALIZE, type Request, type World } from './world.ts'

interface Method {
  readonly asks: Asks
  /** It is about a session. */
  readonly owned?: true
  readonly params?: object
}

const FOLDER = { cwd: '/project', mcpServers: [] }
const messages = [{ role: 'user', content: 'Hello' }]

/** What each asks for, and what it is sent with. */
export const METHODS: Readonly<Record<string, Method>> = {
  authenticate: { asks: 'read', params: { methodId: 'uamp' } },
  'session/new': { asks: 'call', params: FOLDER },
  'session/load': { asks: 'call', owned: true, params: FOLDER },
  'session/resume': { asks: 'call', owned: true, params: FOLDER },
  'session/list': { asks: 'read' },
  'session/set_mode': { asks: 'call', owned: true, params: { modeId: 'none' } },
  'session/set_config_option': { asks: 'call', owned: true, params: { configId: 'none', value: true } },
  'session/prompt': { asks: 'call', owned: true, params: { prompt: [{ type: 'text', text: 'Hello' }] } },
  'session/close': { asks: 'cancel', owned: true },
  'session/delete': { asks: 'cancel', owned: true },
  // The older ones, of UAMP transports.
  'prompt/submit': { asks: 'call', params: { messages } },
  'chat/submit': { asks: 'call', params: { messages } },
  'tools/list': { asks: 'read' },
  'tools/call': { asks: 'tool', params: { name: 'add', arguments: { a: 1, b: 2 } } },
  capabilities: { asks: 'read' },
}

/** It begins every connection, and is the one of ACP or the older one. */
export const FIRST = 'initialize'
/** They get no answer: only their effect shows what was decided. */
export const NOTIFICATIONS = { 'session/cancel': 'cancel', '$/cancel_request': 'cancel' } as const satisfies Record<string, Asks>

export const methods: readonly string[] = Object.keys(METHODS)

/** Some are refused for what they say, as the agent has no modes. */
function letIn(decision: string): string {
  return decision.startsWith('error: ') ? 'admitted' : decision
}

let last = 0
export const messageOf = (method: string, sessionId: string) => {
  const { owned, params = {} } = METHODS[method] ?? { asks: 'call' }
  return { jsonrpc: '2.0', id: ++last, method, params: { ...params, ...(owned && { sessionId }) } }
}

/** A connection over HTTP that alice has opened. Others send messages to it; the answers come to her. */
export class AcpHttp {
  readonly #world: World
  readonly #id: string
  readonly #heard: Heard[] = []
  readonly #waiting: (() => void)[] = []
  #shared: Promise<string> | undefined

  private constructor(world: World, id: string) {
    this.#world = world
    this.#id = id
  }

  static async open(world: World): Promise<AcpHttp> {
    const { headers } = await world.get({ method: 'POST', path: '/acp', body: INITIALIZE })
    const connection = new AcpHttp(world, headers.get('acp-connection-id') ?? '')
    const stream = { method: 'GET', path: '/acp', headers: { accept: 'text/event-stream', ...connection.#headers } }
    await connection.#listen(stream)
    return connection
  }

  async #listen(stream: Request): Promise<void> {
    const response = await this.#world.send('right', stream)
    void this.#read(response).catch(() => undefined)
  }

  /** Hears the updates of a session, too. */
  follow(session: string): Promise<void> {
    const headers = { accept: 'text/event-stream', ...this.#headers, 'acp-session-id': session }
    return this.#listen({ method: 'GET', path: '/acp', headers })
  }

  get #headers(): Record<string, string> {
    return { 'acp-connection-id': this.#id }
  }

  /** The answer to a message, or the refusal of the request that brought it. */
  async ask(caller: Caller, message: { readonly id: number; readonly params: object }): Promise<string> {
    const refused = await this.tell(caller, message)
    return refused ?? letIn(decisionIn('acp', await this.answer(message.id)))
  }

  /** The refusal of the request, if there is one. */
  async tell(caller: Caller, message: { readonly params: object }): Promise<string | undefined> {
    const { sessionId } = message.params as { readonly sessionId?: string }
    const headers = { ...this.#headers, ...(sessionId !== undefined && { 'acp-session-id': sessionId }) }
    const answered = await this.#world.ask(caller, { method: 'POST', path: '/acp', body: message, headers })
    return answered.status === 202 ? undefined : decisionOf('acp', answered)
  }

  answer(id: number): Promise<Heard> {
    return this.next((message) => message['id'] === id)
  }

  /** The first that fits after so many others. */
  async next(fits: (message: Heard) => boolean, after = 0): Promise<Heard> {
    for (;;) {
      const found = this.#heard.slice(after).find(fits)
      if (found) return found
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }

  /** How many messages came. */
  get count(): number {
    return this.#heard.length
  }

  /** A session of alice's that is open here. */
  async session(): Promise<string> {
    const message = messageOf('session/new', '')
    await this.tell('right', message)
    return (await this.answer(message.id))['result'].sessionId as string
  }

  /** The same one again. */
  shared(): Promise<string> {
    return (this.#shared ??= this.session())
  }

  async #read({ body }: Response): Promise<void> {
    const parse = sseParser()
    const decoder = new TextDecoder()
    for await (const bytes of body ?? []) {
      for (const { data } of parse(decoder.decode(bytes, { stream: true }))) this.#heard.push(JSON.parse(data) as Heard)
      for (const wake of this.#waiting.splice(0)) wake()
    }
  }
}

export type Decisions = Record<string, string>

/** What the rule says of a method. Over HTTP the connection is alice's; over a socket everybody has their own. */
export function expectedOf(method: string, carrier: 'HTTP' | 'socket'): Row {
  const { asks, owned } = METHODS[method] as Method
  if (carrier === 'HTTP') return rowFor({ asks, owned: true })
  const decisions = Object.entries(rowFor({ asks, owned })).map(([caller, decision]) => {
    // Who may not call cannot open the session, and so has nothing to close.
    if (method === 'session/close' && decision === 'admitted' && !mayOpen(caller as Caller)) return [caller, 'not found']
    // ACP, Session Delete: deleting an unknown session succeeds.
    if (method === 'session/delete' && decision === 'not found') return [caller, 'admitted']
    return [caller, decision]
  })
  return Object.fromEntries(decisions) as Row
}

const may = (asked: Asked, caller: Caller): boolean => decisionFor({ owned: true, ...asked }, caller) === 'admitted'
const mayOpen = (caller: Caller): boolean => may({ asks: 'call' }, caller)

/** A session for a message: one of its own for those who may change it. */
async function sessionFor(connection: AcpHttp, method: string, caller: Caller): Promise<string> {
  if (!METHODS[method]?.owned) return ''
  return may({ asks: 'cancel' }, caller) ? connection.session() : connection.shared()
}

/** All methods over HTTP, by one caller. */
export async function overHttp(connection: AcpHttp, caller: Caller): Promise<Decisions> {
  const decisions: Decisions = {}
  for (const method of methods) {
    const session = await sessionFor(connection, method, caller)
    // The answer to a prompt comes after its updates, and where they come.
    if (method === 'session/prompt') await connection.follow(session)
    decisions[method] = await connection.ask(caller, messageOf(method, session))
  }
  return decisions
}

interface OverSocket {
  readonly world: World
  readonly path: string
  /** Where alice opens sessions. */
  readonly connection: AcpHttp
}

/** The same over a socket of the caller's own. */
export async function overSocket({ world, path, connection }: OverSocket, caller: Caller): Promise<Decisions> {
  const line = await Line.open(world.url, { path, headers: world.headersOf(caller) })
  if (!(line instanceof Line)) {
    const refused = decisionOf('acp', line)
    return Object.fromEntries(methods.map((method) => [method, refused]))
  }
  const ask = async (message: { readonly id: number }): Promise<Heard> => {
    line.send(message)
    return line.next(({ id, method }) => id === message.id && method === undefined)
  }
  const decisions: Decisions = {}
  try {
    await ask(INITIALIZE)
    for (const method of methods) {
      const session = await sessionFor(connection, method, caller)
      if (session !== '' && mayOpen(caller)) await ask(messageOf('session/load', session))
      decisions[method] = letIn(decisionIn('acp', await ask(messageOf(method, session))))
    }
    return decisions
  } finally {
    line.close()
  }
}
