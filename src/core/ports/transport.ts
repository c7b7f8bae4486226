import type { UampError } from '../../protocol/errors.ts'
import type { Clocks } from '../basics/clocks.ts'
import type { Access, Principal } from './access.ts'
import type { AgentPort } from './agent.ts'
import type { GuardedHttp, HttpClient } from './http.ts'
import type { Keys } from './keys.ts'
import type { Redaction } from './redaction.ts'
import type { Gateway } from './session.ts'
import type { Store } from './store.ts'

/** A protocol: the routes it mounts. Knows no server and no other transport. */
export interface Transport {
  readonly name: string
  routes(host: Host): readonly Route[]
  /** How this protocol says no over HTTP, to whatever is refused at its paths. Default: the server's own form. */
  refusal?(error: UampError, options?: RefusalOptions): Response
}

export interface RefusalOptions {
  /** Where HTTP has a finer status than the code has: 405, 408, 414, 426, 431. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}

/** What a transport may use. */
export interface Host extends Clocks {
  readonly gateway: Gateway
  readonly store: Store
  /** Names of the agents that are there now, and what each can do. */
  readonly agents: Agents
  readonly log: Logger
  readonly meter: Meter
  /** What must not leave the process. */
  readonly secrets: Redaction
  /** What secrets of clients are sealed with before they are stored. Undefined: none are stored. */
  readonly keys?: Keys | undefined
  readonly newId: () => string
  /** Where this server is for whoever sent the request: `https://example.com/prefix`, without a slash at the end. */
  readonly publicUrl: (request: Request) => string
  /** Where this server is for everybody, as whoever runs it says. Undefined: only requests tell, and what they tell is never signed. */
  readonly ownUrl?: string | undefined
  /** For calls to addresses that we were given by whoever runs the server. */
  readonly http: HttpClient
  /** For calls to addresses that clients name. Undefined: this runtime cannot guard them, so there are none. */
  readonly outbound?: GuardedHttp | undefined
  /** Resolves when the server has started: what the last run left open is closed by then. */
  readonly started: Promise<unknown>
  /** Aborted when the server shuts down: what goes on without a request ends then. */
  readonly closing: AbortSignal
}

export type Logger = (level: 'debug' | 'info' | 'warn' | 'error', message: string, fields?: Readonly<Record<string, unknown>>) => void

/** What is counted, by transport. */
export interface Meter {
  countEvents(transport: string, count: number): void
  countError(transport: string, code: string): void
  /** From `response.create` to the first event of the answer. */
  observeFirstDelta(transport: string, ms: number): void
}

export interface Agents {
  names(): readonly string[]
  get(name: string): AgentPort | undefined
}

export type Route = HttpRoute | SocketRoute

/** An async generator of texts is streamed as server-sent events. */
type Reply = Promise<Response | Streamed> | AsyncGenerator<string, void>

/** `public`: health, cards, keys, manifests. `request`: the request carries credentials, and so it is known who asks. */
export type HttpRoute = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  /** Bytes of a body here, where a protocol needs more than the server allows elsewhere: 413. Read it as it comes. */
  readonly bodyBytes?: number
  /** How this route says no, where its protocol has several ways to. */
  readonly refusal?: Transport['refusal']
} & (
  | { readonly access: 'public'; handle(request: Request, call: Call): Reply }
  | { readonly access: 'request'; handle(request: Request, call: KnownCall): Reply }
)

/** Texts that are made while they are written, so that none is kept. A batch of events is such a one. */
export interface Texts {
  eachText(visit: (text: string) => void): void
}

export type Frame = string | Uint8Array | Texts

/** A streamed answer as texts ready for the wire. The Node server writes them as they come; other runtimes wrap them. */
export interface Streamed {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** What the iterator returns is written in one piece with the end, so that a client which stops there finds the end at once. */
  readonly frames: AsyncIterable<Frame, Frame | void>
  /** Written when there was nothing to say for a while, so that proxies and clients know that it is alive. */
  readonly heartbeat?: string
  /** How this protocol says that a stream ends early. Else the connection is cut, and a client that comes back goes on from there. */
  readonly failure?: (error: UampError) => Frame | undefined
}

/** `first-message`: credentials may also come with one of the first messages, which are few and small until then. */
export type SocketRoute = {
  readonly method: 'WS'
  readonly path: string
  readonly subprotocols?: readonly string[]
  /** Bytes of a message, where the protocol names a number: close 1009. Default: the server's. */
  readonly messageBytes?: number | undefined
} & (
  | { readonly access: 'public' | 'first-message'; handle(socket: Socket, call: Call): Promise<void> }
  | { readonly access: 'request'; handle(socket: Socket, call: KnownCall): Promise<void> }
)

/** What the server worked out about a request or an upgrade before the transport sees it. */
export interface Call {
  /** The agent that the path names, or the one that owns `/`. */
  readonly agent: string | undefined
  /** The path names no agent: what is said in the request may. */
  readonly root: boolean
  readonly request: Request
  readonly params: Readonly<Record<string, string>>
  /** Undefined on a public route, and on a `first-message` one whose upgrade carried no credentials. */
  readonly principal: Principal | undefined
  /** Where the call comes from, as a trusted proxy says where there is one; empty where the runtime cannot tell. */
  readonly address: string
  /** For credentials that arrive later: first message, `session.create.token`, `session.update`. */
  readonly access: Access
  readonly signal: AbortSignal
}

/** A call of somebody who is known. */
export interface KnownCall extends Call {
  readonly principal: Principal
  /** What is left of the principal's requests. */
  readonly quota: Quota
}

export interface Quota {
  readonly limit: number
  readonly remaining: number
  /** Until it is whole again. */
  readonly resetMs: number
}

/** A WebSocket reduced to what protocols need. Iteration ends when the peer closes; `send` resolves when more may be sent, also if the peer vanishes. */
export interface Socket extends AsyncIterable<string | Uint8Array> {
  /** Writes all frames in one piece: texts as text messages, bytes as binary ones. */
  send(frames: readonly (string | Uint8Array)[] | Texts): Promise<void>
  close(code?: number, reason?: string): void
}
