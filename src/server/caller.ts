import type { Principal } from '../core/ports/access.ts'

/** Who is on the other end of a request, as far as the network tells. */
export interface Caller {
  /** The caller's address, as a trusted proxy says where there is one. */
  readonly address: string
  /** The connection has shown valid credentials: it is no longer the first to go when there are too many, and what it leaves unread is theirs. */
  vouch(principal: Principal): void
}

/** Where the runtime cannot tell. */
export const UNKNOWN_CALLER: Caller = { address: '', vouch: () => undefined }
