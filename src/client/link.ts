import type { UampClientError } from './errors.ts'
import type { Line } from './line.ts'
import type { Reconnect } from './reconnect.ts'

export type Status = 'closed' | 'connecting' | 'open' | 'reconnecting'

export interface LinkOptions {
  /** The server's address, without a slash at the end. */
  readonly base: string
  readonly token: string | undefined
  readonly fetch: typeof globalThis.fetch
  readonly reconnect: Reconnect
  readonly onStatus: (status: Status, error?: UampClientError) => void
}

/** A way to the server that carries any number of sessions and keeps each of them connected until it is over. */
export interface Link {
  add(line: Line): void
  /** Ends the connections, not the sessions. */
  close(): void
}
