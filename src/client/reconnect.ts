import { backoff, type BackoffOptions } from '../wire/backoff.ts'
import { isTransient, UampClientError } from './errors.ts'
import type { Line } from './line.ts'
import type { Tokens } from './tokens.ts'

export interface Reconnect extends BackoffOptions {
  /** Failures in a row before the client gives up. Default: 12, about two minutes. 0 never reconnects. */
  readonly attempts?: number
  /** Silence after which the connection is tested. After as much again it counts as dead. */
  readonly idleMs?: number
}

/** Longer than the server's heartbeat. Whatever is silent for so long counts as dead. */
export function patienceMs({ idleMs = 15_000 }: Reconnect): number {
  return idleMs * 2
}

export type Status = 'closed' | 'connecting' | 'open' | 'reconnecting'

export interface LinkOptions {
  /** The server's address, without a slash at the end. */
  readonly base: string
  readonly tokens: Tokens
  readonly fetch: typeof globalThis.fetch
  readonly reconnect: Reconnect
  readonly onStatus: (status: Status, error?: UampClientError) => void
}

/** Carries any number of sessions to the server, and keeps each connected until it is over. */
export interface Link {
  add(line: Line): void
  /** Ends the connections, not the sessions. */
  close(): void
}

export interface Attempt {
  /** How many attempts have failed in a row before this one. */
  readonly failures: number
  /** True if a connection has worked before. */
  readonly known: boolean
  /** Call it when this connection works. */
  readonly proved: () => void
}

export interface KeepOptions {
  /** Runs one connection to its end. False: no further attempt. */
  readonly attempt: (attempt: Attempt) => Promise<boolean>
  readonly reconnect: Reconnect
  readonly signal: AbortSignal
  readonly onRetry: (error: UampClientError) => void
}

/**
 * Reconnects whenever the connection is lost. Throws the error that made it give up. A first connection that fails is such an error,
 * because its caller knows best whether to wait longer.
 */
export async function keepConnected({ attempt, reconnect, signal, onRetry }: KeepOptions): Promise<void> {
  const { attempts = 12, ...options } = reconnect
  const delay = backoff(options)
  let known = false
  let failures = 0
  const proved = (): void => {
    known = true
    failures = 0
  }
  for (;;) {
    let error: UampClientError
    try {
      if (!(await attempt({ failures, known, proved }))) return
      error = new UampClientError({ code: 'unreachable', message: 'The connection was lost' })
    } catch (thrown) {
      error =
        thrown instanceof UampClientError
          ? thrown
          : new UampClientError({ code: 'unreachable', message: `No connection: ${String(thrown)}` }, thrown)
      if (!isTransient(error)) throw error
    }
    if (signal.aborted) return
    if (!known || failures >= attempts) throw error
    onRetry(error)
    await sleep(Math.max(delay(failures), retryAfterMs(error)), signal)
    failures += 1
    if (signal.aborted) return
  }
}

/** The wait that the server asked for, in milliseconds. */
export function retryAfterMs({ details }: UampClientError): number {
  const seconds = Number(details?.['retry_after'])
  return seconds > 0 ? seconds * 1000 : 0
}

/** Resolves early if the signal is aborted. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    if (signal.aborted) done()
    else signal.addEventListener('abort', done)
  })
}

/** True if the promise resolves in time. */
export function within(promise: Promise<void>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms)
    void promise.then(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}

/** Runs with a signal that is aborted with `stop`, or after `ms`. */
export async function withDeadline<T>(stop: AbortSignal, ms: number, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController()
  const release = follow(stop, late)
  const timer = setTimeout(() => late.abort(), ms)
  try {
    return await run(late.signal)
  } finally {
    clearTimeout(timer)
    release()
  }
}

/** Aborts the controller with the signal. Not `AbortSignal.any`, whose signals Node 20 keeps for as long as their sources live. */
export function follow(signal: AbortSignal, controller: AbortController): () => void {
  const abort = (): void => controller.abort()
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  return () => signal.removeEventListener('abort', abort)
}
