import { backoff, type BackoffOptions } from '../wire/backoff.ts'
import { isTransient, UampClientError } from './errors.ts'

export interface Reconnect extends BackoffOptions {
  /** Failures in a row before it is given up; 12 are about two minutes. 0 never reconnects. */
  readonly attempts?: number
  /** Silence after which the connection is tested, and after as much again taken for dead. */
  readonly idleMs?: number
}

export interface Attempt {
  /** How many attempts have failed in a row before this one. */
  readonly failures: number
  /** Whether a connection has worked before. */
  readonly known: boolean
  /** To be called when this connection has shown that it works. */
  readonly proved: () => void
}

export interface KeepOptions {
  /** One connection, from beginning to end. False: all is over, no further attempt. */
  readonly attempt: (attempt: Attempt) => Promise<boolean>
  readonly reconnect: Reconnect
  readonly signal: AbortSignal
  readonly onRetry: (error: UampClientError) => void
}

/**
 * Connects again whenever the connection is lost. A first connection that fails is reported at once: whoever waits for it
 * knows best whether to wait longer. Throws what made it give up.
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

/** What the server asked for, in milliseconds. */
export function retryAfterMs({ details }: UampClientError): number {
  const seconds = Number(details?.['retry_after'])
  return seconds > 0 ? seconds * 1000 : 0
}

/** Resolves early, too, when the signal is aborted. */
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

/** Whether it is settled in time. */
export function within(promise: Promise<void>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms)
    void promise.then(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}

/** Runs with a signal that is aborted together with `stop`, or after `ms`. */
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

/** Aborts the one with the other. Not `AbortSignal.any`: Node 20 keeps what it makes for as long as its sources live. */
export function follow(signal: AbortSignal, controller: AbortController): () => void {
  const abort = (): void => controller.abort()
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  return () => signal.removeEventListener('abort', abort)
}
