import type { UampError } from '../../protocol/errors.ts'

/** Removes secrets from everything that leaves the process. It knows the value of every configured secret. */
export interface Redaction {
  readonly text: (text: string) => string
  /** The same for JSON. */
  readonly value: <T>(value: T) => T
  /** The error that a client may see for what was thrown. Everyone who writes an error for a client gets it here. */
  readonly told: (thrown: unknown) => UampError
}
