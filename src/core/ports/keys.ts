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
