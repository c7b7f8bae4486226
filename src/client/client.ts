import type { Capabilities } from '../protocol/capabilities.ts'
import type { SessionConfig } from '../protocol/session-config.ts'
import { Answers, type OnApproval, type Tool } from './answers.ts'
import { UampClientError } from './errors.ts'
import { Line, type Position } from './line.ts'
import { SseLink } from './link-sse.ts'
import { WebSocketLink, type SocketConstructor } from './link-websocket.ts'
import type { Wallet } from '../protocol/wallet.ts'
import { Payments } from './payments.ts'
import { patienceMs, type Link, type LinkOptions, type Reconnect, type Status } from './reconnect.ts'
import { Session, type Server } from './session.ts'
import { Tokens, type TokenSource } from './tokens.ts'

export interface ConnectOptions {
  /**
   * A function is called again before the token expires, which a JWT tells, and when the server wants another. One that takes longer than
   * twice `reconnect.idleMs` counts as failed.
   */
  readonly token?: TokenSource
  /** The agent of sessions that name none. */
  readonly agent?: string
  /** `auto`: WebSocket, or HTTP + SSE if the runtime has no WebSocket or cannot open one. */
  readonly transport?: 'auto' | 'websocket' | 'sse'
  /** Pays what agents ask for. Without one, the application sees `payment.required`, and answers with `session.pay`. */
  readonly wallet?: Wallet
  readonly WebSocket?: SocketConstructor
  readonly fetch?: typeof globalThis.fetch
  readonly reconnect?: Reconnect | false
  /** Called with every change, and with the reason if a connection was lost. */
  readonly onStatus?: (status: Status, error?: UampClientError) => void
  readonly newId?: () => string
}

export interface SessionOptions extends Omit<Partial<SessionConfig>, 'tools'> {
  readonly agent?: string
  readonly chat?: string
  readonly tools?: Readonly<Record<string, Tool>>
  readonly onApproval?: OnApproval
  /** Extension events (`x.*`) to receive, beside those that the client needs; true for all. */
  readonly events?: readonly string[] | true
  /** What the client can do, for the agent: modalities, widgets, `supports_thinking` … The client's own extensions are added. */
  readonly capabilities?: Partial<Capabilities>
  /** Resumes a session from `session.position`. */
  readonly resume?: Position
  /** Stops opening the session. */
  readonly signal?: AbortSignal
}

/** Makes a client. It connects when its first session is opened. */
export function connect(url: string | URL, options: ConnectOptions = {}): Client {
  return new Client(url, options)
}

export class Client {
  readonly #options: ConnectOptions
  readonly #newId: () => string
  readonly #lines = new Set<Line>()
  #link: Link
  readonly #server: Server
  readonly #tokens: Tokens
  #status: Status = 'closed'
  #closed = false

  constructor(url: string | URL, options: ConnectOptions) {
    const { token, transport = 'auto', fetch = globalThis.fetch.bind(globalThis), newId = randomId } = options
    const reconnect = options.reconnect === false ? { attempts: 0 } : (options.reconnect ?? {})
    const WebSocket = options.WebSocket ?? (globalThis as { WebSocket?: SocketConstructor }).WebSocket
    if (transport === 'websocket' && !WebSocket) {
      throw new UampClientError({
        code: 'not_supported',
        message: 'This runtime has no WebSocket: pass one, or leave `transport` out',
      })
    }
    this.#options = options
    this.#newId = newId
    this.#server = { base: baseOf(url), fetch }
    this.#tokens = new Tokens(token, patienceMs(reconnect))
    const common: LinkOptions = {
      ...this.#server,
      tokens: this.#tokens,
      reconnect,
      onStatus: (status, error) => this.#change(status, error),
    }
    const blocked = (lines: readonly Line[]): void => {
      this.#link = new SseLink(common)
      for (const line of lines) this.#link.add(line)
    }
    this.#link =
      transport === 'sse' || !WebSocket
        ? new SseLink(common)
        : new WebSocketLink({ ...common, WebSocket, newId, onBlocked: transport === 'auto' ? blocked : undefined })
  }

  get status(): Status {
    return this.#status
  }

  /** Opens a session, or resumes one. Rejects with the server's reason, or `unreachable`. */
  async session({ signal, resume, ...options }: SessionOptions = {}): Promise<Session> {
    signal?.throwIfAborted()
    if (this.#closed) throw closed()
    const line = new Line({ create: this.#create(options), resume, newId: this.#newId })
    const { wallet } = this.#options
    const payments = wallet && new Payments({ wallet, url: this.#server.base, newId: this.#newId })
    const answers = new Answers({
      tools: options.tools ?? {},
      onApproval: options.onApproval,
      payments,
      resumed: resume !== undefined,
      send: (event) => line.send(event),
    })
    line.listen((event) => answers.see(event))
    this.#lines.add(line)
    void line.closed.then(() => {
      answers.stop()
      this.#lines.delete(line)
    })
    const aborted = (): void => line.close(closed())
    signal?.addEventListener('abort', aborted)
    try {
      this.#link.add(line)
      await line.ready
    } catch (error) {
      signal?.throwIfAborted()
      throw error
    } finally {
      signal?.removeEventListener('abort', aborted)
    }
    return new Session(line.id as string, line, { ...this.#server, payments })
  }

  /** Closes all connections. The sessions stay on the server, and can be resumed. */
  close(): void {
    this.#closed = true
    for (const line of this.#lines) line.close(closed())
    this.#link.close()
    this.#tokens.close()
    this.#change('closed')
  }

  #create({
    agent = this.#options.agent,
    chat,
    tools = {},
    onApproval,
    events = [],
    capabilities,
    ...config
  }: Omit<SessionOptions, 'signal' | 'resume'>) {
    const wanted = events === true || ['x.ack', ...(onApproval ? ['x.approval.request'] : []), ...events]
    const definitions = Object.entries(tools).map(([name, { description, parameters }]) => ({
      type: 'function' as const,
      function: { name, ...(description !== undefined && { description }), ...(parameters && { parameters }) },
    }))
    return {
      type: 'session.create' as const,
      uamp_version: '1.0',
      ...(agent !== undefined && { agent }),
      ...(chat !== undefined && { chat }),
      session: { ...config, modalities: config.modalities ?? ['text'], ...(definitions.length > 0 && { tools: definitions }) },
      client_capabilities: {
        id: 'uamp-client',
        provider: 'uamp',
        modalities: ['text', 'image', 'audio', 'video', 'file'],
        supports_streaming: true,
        supports_thinking: true,
        supports_caching: false,
        ...capabilities,
        extensions: { ...capabilities?.extensions, uamp: { ack: true, events: wanted } },
      },
    }
  }

  #change(status: Status, error?: UampClientError): void {
    if (status === this.#status || (this.#closed && status !== 'closed')) return
    this.#status = status
    this.#options.onStatus?.(status, error)
  }
}

/** Not `randomUUID`, which pages over plain HTTP lack, except on localhost. */
function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function closed(): UampClientError {
  return new UampClientError({ code: 'closed', message: 'The client was closed' })
}

/** Takes `ws:` for `http:`. In a browser the address may be relative to the page. */
function baseOf(url: string | URL): string {
  const { protocol, host, pathname } = new URL(url, (globalThis as { location?: { href: string } }).location?.href)
  return `${protocol.replace(/^ws/, 'http')}//${host}${pathname.replace(/\/+$/, '')}`
}
