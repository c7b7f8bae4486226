/** Who a client is. `Access` establishes it when a connection or session opens; a refreshed token must give the same principal. */
export interface Principal {
  readonly tenant: string
  /** `anonymous` stands for everybody without credentials: the server then counts requests and sockets by address. */
  readonly id: string
  readonly scopes: readonly string[]
}

export interface Credentials {
  readonly headers?: Headers
  readonly subprotocols?: readonly string[]
  readonly token?: string
}

/**
 * What a principal may do with an agent: talk to it over any protocol (`call`), run its tools directly (`tool.call`), and speak for
 * many users of its own, a session id for each interaction (`platform`). The union is closed, so that a right holds on every
 * transport or on none.
 */
export type Action = 'call' | 'tool.call' | 'platform'

/** Decides who may call, in the same way for every transport. */
export interface Access {
  /** The `Authorization` schemes that it understands, for clients that ask before they call. None: clients cannot identify themselves. */
  readonly schemes?: readonly 'Bearer'[] | undefined
  /** Undefined: the credentials are wrong, or missing although required. */
  authenticate(credentials: Credentials): Promise<Principal | undefined>
  authorize(principal: Principal, action: Action, agent: string): boolean
}
