/** Every bound on what a client can make the server hold or do, and what happens beyond it. */
export interface Limits {
  /** Bytes of a request's body: 413, before anything is parsed. */
  readonly bodyBytes: number
  /** Bytes of all headers of a request: 431. */
  readonly headerBytes: number
  /** Headers of a request: 431. */
  readonly headerCount: number
  /** Bytes of a request's URL: 414. */
  readonly urlBytes: number
  /** Time for a request's headers to arrive: 408. */
  readonly headersTimeoutMs: number
  /** Time for a whole request to arrive: 408. The answer may take longer. */
  readonly requestTimeoutMs: number
  /** Open connections, sockets among them: 503 with `Retry-After`. */
  readonly connections: number
  /** Open WebSockets of one principal: 429. */
  readonly socketsPerPrincipal: number
  /** Requests and upgrades of one principal: 429 with `Retry-After`. */
  readonly requestsPerSecond: number
  /** How many of them may come at once. */
  readonly requestBurst: number
  /** Bytes of a WebSocket message: close 1009. */
  readonly messageBytes: number
  /** Messages on one WebSocket: beyond it the server stops reading for a while. Nothing is dropped. */
  readonly messagesPerSecond: number
  /** How many of them may come at once. */
  readonly messageBurst: number
  /** Bytes that may wait for a slow reader before its writer has to wait. */
  readonly outboundBytes: number
  /**
   * How long a reader may take nothing at all: close 1013, or the end of the HTTP response. How long a sender of a large body or message
   * may bring next to nothing of it: 408, or close 1013.
   */
  readonly stallMs: number
  /** Silence after which a stream of events gets a comment, which shows that it is alive. */
  readonly heartbeatMs: number
  /** Silence after which a WebSocket is pinged. */
  readonly pingIntervalMs: number
  /** Time for the pong, after which the connection counts as dead. */
  readonly pongTimeoutMs: number
  /** Time for a message to bring credentials, on sockets that allow it: close 4401. */
  readonly authenticateMs: number
  /** Bytes of a message before the credentials: close 4401. */
  readonly strangerMessageBytes: number
  /** Messages before the credentials: close 4401. */
  readonly strangerMessages: number
  /** Sockets that wait for credentials: the oldest is closed with 1013. */
  readonly strangers: number
  /** The same for one address, or one IPv6 network of 64 bits. */
  readonly strangersPerAddress: number
  /**
   * Requests of one address, or one IPv6 network of 64 bits, to routes that need no token: 429 with `Retry-After`, and the connection
   * ends. Probes and callers with a valid token always pass.
   */
  readonly strangerRequestsPerSecond: number
  /** How many of them may come at once. */
  readonly strangerRequestBurst: number
  /** Wrong tokens of one address, or one IPv6 network of 64 bits: 429 with `Retry-After` instead of 401. A valid one always works. */
  readonly wrongTokensPerSecond: number
  /** How many of them may come at once. */
  readonly wrongTokenBurst: number
  /** How long an agent that a client hosted, and that is offline, stays known: then its name is free. */
  readonly hostedNameMs: number
  /** How long a hosted agent may say nothing to a request: `timeout`. */
  readonly hostedSilenceMs: number
}

export const DEFAULT_LIMITS: Limits = {
  bodyBytes: 4 * 1024 * 1024,
  headerBytes: 16 * 1024,
  headerCount: 100,
  urlBytes: 8 * 1024,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 300_000,
  connections: 10_000,
  socketsPerPrincipal: 6_000,
  requestsPerSecond: 10_000,
  requestBurst: 20_000,
  messageBytes: 4 * 1024 * 1024,
  messagesPerSecond: 1_000,
  messageBurst: 2_000,
  outboundBytes: 1024 * 1024,
  stallMs: 30_000,
  heartbeatMs: 15_000,
  pingIntervalMs: 25_000,
  pongTimeoutMs: 10_000,
  authenticateMs: 10_000,
  strangerMessageBytes: 16 * 1024,
  strangerMessages: 3,
  strangers: 1_000,
  strangersPerAddress: 100,
  strangerRequestsPerSecond: 200,
  strangerRequestBurst: 400,
  wrongTokensPerSecond: 1,
  wrongTokenBurst: 20,
  hostedNameMs: 600_000,
  hostedSilenceMs: 120_000,
}
