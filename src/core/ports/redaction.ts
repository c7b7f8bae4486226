import type { UampError } from '../../protocol/errors.ts'

/** The one redaction of what leaves the process. It knows every secret that was configured, by value. */
export interface Redaction {
  /** The text without secrets. */
  readonly text: (text: string) => string
  /** The same for JSON. */
  readonly value: <T>(value: T) => T
  /** What somebody outside may be told of what was thrown. Whoever writes an error for a client asks for it here. */
  readonly told: (thrown: unknown) => UampError
}
