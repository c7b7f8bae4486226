import type { Payment } from '../../protocol/payment.ts'
import type { UampError } from '../../protocol/errors.ts'
import type { Clocks } from '../basics/time.ts'
import type { Access, Action, Principal } from './access.ts'
import type { AgentPort } from './agent.ts'
import type { GuardedHttp, HttpClient } from './http.ts'
import type { Hosting } from './hosting.ts'
import type { Keys, Signer } from './keys.ts'
import type { LiveUses } from './live.ts'
import type { Redaction } from './redaction.ts'
import type { Revocations } from './revocations.ts'
import type { Gateway } from './session.ts'
import type { Store } from './store.ts'
import type { Trace } from './trace.ts'

/** A protocol: the routes it mounts. Knows no server and no other transport. */
export interface Transport {
  readonly name: string
  routes(host: Host): readonly Route[]
  /** This protocol's form of an HTTP refusal, for every request refused at its paths. Default: the server's own form. */
  refusal?(error: UampError, options?: RefusalOptions): Response
  /** Where this form is also used for paths that nothing is at: `/v1/`. */
  readonly under?: string
  /**
   * For routes that several protocols need: an agent that is offered through one of these has them, and one of `all` every agent.
   * Default: the transport is a protocol itself, and serves the agents that are offered through it.
   */
  readonly serves?: readonly string[] | 'all'
}

export interface RefusalOptions {
  /** For refusals whose HTTP status is finer than the error code: 405, 408, 414, 426, 431. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}

/** What a transport may use. */
export interface Host extends Clocks {
  readonly gateway: Gateway
  readonly store: Store
  /** The agents that are registered now. */
  readonly agents: Agents
  readonly log: Logger
  readonly meter: Meter
  readonly secrets: Redaction
  /** The key that seals clients' secrets before they are stored. Undefined: none are stored. */
  readonly keys?: Keys | undefined
  /** Signs in the name of this server. Undefined: it has no keys. */
  readonly signer?: Signer | undefined
  /** Undefined: nothing can be revoked here. */
  readonly revocations?: Revocations | undefined
  /** What goes on by whose credentials. The server adds sockets and streams; a route with `several` adds what it carries. */
  readonly live: LiveUses
  /** Offers agents of clients. Undefined: this server hosts none. */
  readonly hosting?: Hosting | undefined
  readonly newId: () => string
  /** This server's URL as the sender of the request sees it: `https://example.com/prefix`, without a slash at the end. */
  readonly publicUrl: (request: Request) => string
  /**
   * This server's URL as its operator configured it, or where it listens if that is the loopback address. Undefined: it is known only
   * from requests, and must then not be signed.
   */
  readonly ownUrl: () => string | undefined
  /** For calls to addresses that the server's operator configured. */
  readonly http: HttpClient
  /** For calls to addresses that clients name. Undefined: this runtime cannot guard such calls, so do not make them. */
  readonly outbound?: GuardedHttp | undefined
  /** Resolves when the server has started: by then it has closed what the previous process left open. */
  readonly started: Promise<unknown>
  /** Aborted when the server shuts down: ends work that no request waits for. */
  readonly closing: AbortSignal
}

export type Logger = (level: 'debug' | 'info' | 'warn' | 'error', message: string, fields?: Readonly<Record<string, unknown>>) => void

/** Counters, by transport. */
export interface Meter {
  countEvents(transport: string, count: number): void
  countError(transport: string, code: string): void
  /** The time from `response.create` to the first event of the response. */
  observeFirstDelta(transport: string, ms: number): void
}

export interface Agents {
  names(): readonly string[]
  get(name: string): AgentPort | undefined
}

export type Route = HttpRoute | SocketRoute

/** The server streams a generator's texts as server-sent events. */
type Reply = Promise<Response | Streamed | AsyncGenerator<string, void>> | AsyncGenerator<string, void>

/**
 * `public`: health, cards, keys, manifests. `request`: the request carries credentials, so the principal is known. `url`: the URL is
 * itself the credential, and the principal is the one that it was made for.
 */
export type HttpRoute = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  /** What a caller must be allowed to do. The gateway asks for more as it goes. Default: `call`. */
  readonly action?: Action
  /** Largest body in bytes (beyond it: 413), for routes that need more than the server's default. Read such a body as a stream. */
  readonly bodyBytes?: number
  /** The route reads its body by `call.text()`, and in no other way: a large one then costs less. */
  readonly body?: 'text'
  /** This route's form of a refusal, where its protocol has several. */
  readonly refusal?: Transport['refusal']
} & (
  | { readonly access: 'public'; handle(request: Request, call: Call): Reply }
  | { readonly access: 'request'; handle(request: Request, call: KnownCall): Reply }
  | {
      readonly access: 'url'
      /** Whose URL this is. Called before a byte of the body is read. Rejects, with `not_found`, a URL that nobody was given. */
      owner(call: Call): Promise<Principal>
      handle(request: Request, call: KnownCall): Reply
    }
)

/** Texts that are made while they are written, so that memory never holds them all. A `Batch` is one. */
export interface Texts {
  eachText(visit: (text: string) => void): void
}

export type Frame = string | Uint8Array | Texts

/** A streamed HTTP response as frames ready for the wire. The Node server writes them as they come; other runtimes wrap them. */
export interface Streamed {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The iterator's return value is written in one piece with the end of the body, so that no client waits for the end alone. */
  readonly frames: AsyncIterable<Frame, Frame | void>
  /** Written after a silence, so that proxies and clients know that the stream is alive. */
  readonly heartbeat?: string
  /** The frame that tells of an early end. Without one the server cuts the connection, and a client reconnects and resumes. */
  readonly failure?: (error: UampError) => Frame | undefined
  /** Tells the client that its token has expired, and that the stream ends after so many seconds. */
  readonly expired?: ((graceSeconds: number) => void) | undefined
  /** With whose credentials it ends. Default: those that the request came with. */
  readonly principal?: Principal | undefined
}

/** `first-message`: credentials may come in one of the first messages; until then only a few small ones are accepted. */
export type SocketRoute = {
  readonly method: 'WS'
  readonly path: string
  readonly subprotocols?: readonly string[]
  /** What a caller must be allowed to do. Default: `call`. */
  readonly action?: Action
  /** Largest message in bytes (beyond it: close 1009), where the protocol names one. Default: the server's limit. */
  readonly messageBytes?: number | undefined
  /** It carries sessions of several principals, and adds each of them to `host.live`. Default: the socket ends with its credentials. */
  readonly several?: true
  /** How a silent peer is watched, where the protocol says so. Default: the server's limits. */
  readonly watch?: { readonly pingIntervalMs: number; readonly pongTimeoutMs: number } | undefined
} & (
  | { readonly access: 'public' | 'first-message'; handle(socket: Socket, call: Call): Promise<void> }
  | { readonly access: 'request'; handle(socket: Socket, call: KnownCall): Promise<void> }
)

/** What the server worked out about a request or an upgrade before the transport sees it. */
export interface Call {
  /** The agent that the path names, or the one that owns `/`. */
  readonly agent: string | undefined
  /** The path names no agent; the request's body may. */
  readonly root: boolean
  readonly request: Request
  /** The request's id and its trace: give it to `gateway.open`, `session.send` and `session.say`, and put its `fields` into log lines. */
  readonly trace: Trace
  /** The body of the request. Name it in the route as `body: 'text'`. */
  text(): Promise<string>
  readonly params: Readonly<Record<string, string>>
  /** What the request pays with, from its headers. Reading it throws if two of them differ. */
  readonly payment: Payment | undefined
  /** Undefined on a public route, and on a `first-message` one whose upgrade carried no credentials. */
  readonly principal: Principal | undefined
  /** The caller's address, from a trusted proxy if there is one; empty if the runtime does not know it. */
  readonly address: string
  /** For credentials that arrive later: first message, `session.create.token`, `session.update`. */
  readonly access: Access
  /**
   * Counts a wrong secret that a route has found by itself, as a wrong token of this address. Throws `rate_limited` if there were too
   * many.
   */
  countWrong(): void
  /** Aborted when the client leaves. It is made when it is first read, which costs more than `whenGone`. */
  readonly signal: AbortSignal
  /** Calls `leave` when the client leaves, at once if it has left, and maybe also after the end of the answer. */
  whenGone(leave: () => void): void
}

export interface KnownCall extends Call {
  readonly principal: Principal
  readonly quota: Quota
}

/** How many requests or messages may still come before the next is refused or has to wait. */
export interface Quota {
  readonly limit: number
  readonly remaining: number
  /** The time until `remaining` equals `limit` again. */
  readonly resetMs: number
}

/** A WebSocket reduced to what protocols need. Iteration ends when the peer closes. */
export interface Socket extends AsyncIterable<string | Uint8Array> {
  /**
   * Writes all frames in one piece: texts as text messages, bytes as binary ones. Resolves when more may be sent, and also when the
   * peer vanishes, so that nobody waits forever.
   */
  send(frames: readonly (string | Uint8Array)[] | Texts): Promise<void>
  close(code?: number, reason?: string): void
  /** The messages that the peer may still send; undefined where nobody counts them. */
  readonly quota?: Quota
  /** Called, at most once a second, when the peer sends more than that. It is then read more slowly, and nothing is lost. */
  onFlood?: ((quota: Quota) => void) | undefined
}
