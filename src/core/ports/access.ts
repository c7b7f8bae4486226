/** Who a client is. `Access` establishes it when a connection or session opens; a refreshed token must give the same principal. */
export interface Principal {
  readonly tenant: string
  /**
   * Names the principal within its tenant: in the store, in logs, and to agents. `principalId` makes one from an issuer and a subject.
   * `anonymous` stands for everybody without credentials: the server then counts requests and sockets by address.
   */
  readonly id: string
  /** What the credentials allow, in the words of the `Access` that gave them. They are never stored. */
  readonly scopes: readonly string[]
  /** Who vouches for the principal, such as `https://login.example.com`. Undefined: this server's own list of tokens. */
  readonly issuer?: string | undefined
  /** The principal's name at its issuer. */
  readonly subject?: string | undefined
  /** What a trusted issuer says of the principal: `verified`, `reputation:80`. */
  readonly labels?: readonly string[] | undefined
  /** When the credentials end, in milliseconds since 1970. Undefined: never. */
  readonly expiresAt?: number | undefined
  /** The thumbprint of the key, or of the certificate, that the caller has proved to hold. */
  readonly confirmation?: string | undefined
  /** Who acts in this principal's name. Undefined: the principal itself. */
  readonly actor?: Actor | undefined
  /** The agents that the credentials are for. Undefined: all. */
  readonly agents?: readonly string[] | undefined
  /** Names the credentials without revealing them, so that they can be revoked: the `jti` of a token. */
  readonly credential?: string | undefined
  /** Names the key that the credentials are signed with, so that they are revoked with it: the `kid` of a token. */
  readonly key?: string | undefined
}

/** An agent that acts for somebody else, and the one that acts for it in turn (RFC 8693 §4.1). */
export interface Actor {
  readonly issuer?: string | undefined
  readonly subject: string
  readonly actor?: Actor | undefined
}

export interface Credentials {
  readonly headers?: Headers
  readonly subprotocols?: readonly string[]
  /** A token that came in a message or in a body. */
  readonly token?: string
  /**
   * The request, for credentials that must belong to it. `url` is the one that the client called, even behind a proxy. Undefined for a
   * token that came in a message.
   */
  readonly request?: { readonly method: string; readonly url: string } | undefined
  /** The SHA-256 of the client's certificate, in base64url, if TLS or a trusted proxy has checked one. */
  readonly certificate?: string | undefined
  /** The URIs among the names of that certificate, if it was verified: who its issuer says that the client is. */
  readonly certificateUris?: readonly string[] | undefined
  /** The thumbprint of the key that the connection has proved to hold, for a token that came in a message. */
  readonly proven?: string | undefined
  /** Tells callers apart before it is known who they are: bounds what a stranger may cause. */
  readonly from?: string | undefined
}

/** Why somebody is not admitted. */
export interface Denial {
  /** `proof`: the token is right, but its owner has not proved to be the sender. */
  readonly denied: 'missing' | 'invalid' | 'expired' | 'revoked' | 'untrusted' | 'proof'
  /** For the caller. Never repeats the token. */
  readonly message: string
  /** What to send instead, as a value of `WWW-Authenticate`. Default: the schemes of the `Access`. */
  readonly challenge?: string | undefined
  /** The nonce for the next proof (RFC 9449 §8). */
  readonly nonce?: string | undefined
  /** Whose the token says that it is, for the log of the operator, who may want to believe them. Nothing of it is verified. */
  readonly claimed?: { readonly issuer: string; readonly subject: string } | undefined
}

/**
 * What a principal may do. `call`: talk to an agent, over any protocol; this includes `read` and `cancel` for what the principal has
 * asked, and `content`, which is to send files. `tool`: run an agent's tools directly. `host`: offer an agent of this name through this
 * server. `operate`: see how the server is doing. `pay`: use one's own money. `bank`: make money, and see and move that of others, so it
 * does not come with `operate`, which every token of a list has. `room` is for what comes with rooms. The set is closed, so that a right
 * holds on every transport or on none.
 */
export type Action = 'call' | 'tool' | 'read' | 'cancel' | 'content' | 'room' | 'host' | 'pay' | 'bank' | 'operate'

/** Decides who may call, in the same way for every transport. */
export interface Access {
  /** The `Authorization` schemes that it understands, for clients that ask before they call. None: clients cannot identify themselves. */
  readonly schemes?: readonly ('Bearer' | 'DPoP')[] | undefined
  /** How long sockets and streams may go on after `expiresAt` of their principal. Default: 60. */
  readonly graceSeconds?: number | undefined
  /** Undefined: the credentials are wrong, or missing although required. */
  authenticate(credentials: Credentials): Promise<Principal | Denial | undefined>
  /** `agent`: the agent's name; undefined if the action is about no single agent. */
  authorize(principal: Principal, action: Action, agent: string | undefined): boolean
}
