import type { Principal } from './access.ts'

/** Something that goes on by the credentials of one principal: a socket, a stream, or one session on a socket that has several. */
export interface LiveUse {
  /** Whose it is, by the newest credentials. Undefined: nobody's any more. */
  readonly principal: () => Principal | undefined
  /** Called once the credentials have expired. After the grace, in seconds, it is cut unless there are newer ones. */
  readonly expired?: ((graceSeconds: number) => void) | undefined
  /** Ends it at once. `reason`: `token_expired`, `token_revoked`. */
  readonly cut: (reason: string) => void
}

/** Everything that goes on now by somebody's credentials, so that it ends with them. */
export interface LiveUses {
  /** The returned function takes it off the list. Add it again when there are newer credentials for it. */
  add(use: LiveUse): () => void
  /** Ends at once what belongs to these principals. Returns how much that was. */
  cut(matches: (principal: Principal) => boolean, reason: string): number
}
