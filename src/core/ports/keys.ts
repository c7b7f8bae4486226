/**
 * The server's key, which seals the secrets of others: clients' payments, credentials of their webhooks. It is synchronous, because
 * records must be written in the order in which they are made.
 */
export interface Keys {
  /** Names the key without revealing anything about it. */
  readonly id: string
  /** Encrypts a text and binds it to `about`, such as the key of its record: it cannot be opened with another `about`. */
  seal(text: string, about: string): string
  /** Decrypts a text. Throws `internal` if another key sealed it, if `about` differs, or if it is damaged. */
  open(sealed: string, about: string): string
  /** A digest to keep in place of a used secret: it tells only whether another secret is the same. */
  digest(text: string): string
}

/** What a signature is for. Each purpose has keys of its own, so that a signature can never pass for one of another kind. */
export type Purpose = 'tokens' | 'responses' | 'cards' | 'envelopes' | 'payments'

/** Signs in the name of this server. Private keys never leave it. */
export interface Signer {
  /** The key that signs now. */
  key(purpose: Purpose): Promise<SignKey>
  /** The public halves of all keys whose signatures may still have to be checked, the current ones first. */
  publicJwks(purpose?: Purpose): Promise<{ readonly keys: readonly PublicJwk[] }>
  /** Makes a new key sign from now on. The one before stays public as long as something that it signed may be valid. */
  rotate(purpose: Purpose): Promise<SignKey>
}

export interface SignKey {
  readonly kid: string
  readonly alg: 'RS256' | 'EdDSA' | 'ES256'
  /** Runs outside of the event loop. */
  sign(bytes: Uint8Array): Promise<Uint8Array>
}

/** A public key as RFC 7517 writes it. */
export interface PublicJwk {
  readonly kty: string
  readonly kid: string
  readonly alg: string
  readonly use: 'sig'
  readonly [member: string]: unknown
}
