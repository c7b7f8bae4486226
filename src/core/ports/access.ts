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

/** One decision for every transport. */
export interface Access {
  /** The schemes of `Authorization` that are understood, for those who ask before they call. None: nobody can show who he is. */
  readonly schemes?: readonly 'Bearer'[]
  /** Undefined: the credentials are wrong, or there are none where some are needed. */
  authenticate(credentials: Credentials): Promise<Principal | undefined>
  authorize(principal: Principal, action: string, resource: string): boolean
}
