/** Who is on the other side. Established by `Access` when a connection or session opens; a refreshed token must give the same one. */
export interface Principal {
  readonly tenant: string
  readonly id: string
  readonly scopes: readonly string[]
}

export interface Credentials {
  readonly headers?: Headers
  readonly subprotocols?: readonly string[]
  readonly token?: string
}

/**
 * What somebody may do with an agent: talk to it, over whatever protocol (`call`), and run its tools themselves (`tool.call`). Closed,
 * so that a right which is given or taken holds on every transport.
 */
export type Action = 'call' | 'tool.call'

/** One decision for every transport. */
export interface Access {
  /** The schemes of `Authorization` that are understood, for those who ask before they call. None: nobody can show who he is. */
  readonly schemes?: readonly 'Bearer'[] | undefined
  /** Undefined: the credentials are wrong, or there are none where some are needed. */
  authenticate(credentials: Credentials): Promise<Principal | undefined>
  /** Whether they may do that with the agent of this name. */
  authorize(principal: Principal, action: Action, agent: string): boolean
}
