/**
 * The server's key, for secrets of others that it has to keep: what clients pay with, credentials of their webhooks. Synchronous,
 * as a record is made in one go and records are written in the order in which they are made.
 */
export interface Keys {
  /** Names the key, and says nothing about it. */
  readonly id: string
  /** Encrypts a text. It is bound to what it is about, such as the key of its record: elsewhere it does not open. */
  seal(text: string, about: string): string
  /** The text again. Throws `internal` when another key sealed it, when it was for something else, or when it is damaged. */
  open(sealed: string, about: string): string
  /** What is kept of a secret that was used: tells whether another one is the same, and nothing else. */
  digest(text: string): string
}
