import type { Principal } from './access.ts'

/** What is not to be believed any more, though its time has not come. */
export type Revocation =
  | {
      readonly kind: 'token'
      /** The `jti` of the token. */
      readonly id: string
      /** Undefined: whoever issued it. */
      readonly issuer?: string | undefined
      /** When the token ends by itself, in milliseconds since 1970. Undefined: unknown. */
      readonly expiresAt?: number | undefined
    }
  | {
      readonly kind: 'key'
      /** The `kid` of the key. All that it signed is refused. */
      readonly id: string
      /** Undefined: whosever key it is. */
      readonly issuer?: string | undefined
    }
  | {
      readonly kind: 'principal'
      readonly id: string
      /** Default: `default`. */
      readonly tenant?: string | undefined
    }

/** Everything that is revoked. It is in memory, so that asking costs a request next to nothing, and in the store. */
export interface Revocations {
  /** Why this principal is refused now. */
  find(principal: Principal): Revocation['kind'] | undefined
  /** Takes effect at once and cuts what is open. Resolves to the number of cut connections when the store has it. */
  revoke(what: Revocation): Promise<number>
  /** Takes a revocation back. False: there was none. */
  restore(what: Revocation): Promise<boolean>
  list(): readonly (Revocation & { readonly at: number })[]
}
