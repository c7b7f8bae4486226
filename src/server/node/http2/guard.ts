import { constants } from 'node:http2'
import type { Duplex } from 'node:stream'
import { Bucket } from '../../../core/basics/bucket.ts'
import type { Limits } from '../../limits.ts'
import type { Strangers } from '../connections.ts'
import type { Swept } from '../sweeper.ts'
import { Http2Answer } from './answer.ts'
import type { Carrier, Line } from './line.ts'

/** Streams that a client may break off at once, and in each second: more is an attack (CVE-2023-44487). */
const RESETS = { burst: 100, perSecond: 10 }
/** Bytes a second that are neither headers nor a body: windows, priorities, empty frames, frames of unknown types. */
const NOISE_BYTES = 256 * 1024
/** A window for each 16 KiB that the client reads takes much less than this part of them. */
const NOISE_FOR_READING = 1 / 64
/** What may come of a body that is no longer wanted: the window of a stream. */
const WINDOW_BYTES = 64 * 1024
/** How long a connection of a caller with a token may have no request. */
const IDLE_MS = 60_000
/** How long the other side has to end a connection. */
const LEAVE_MS = 1_000

const { NGHTTP2_ENHANCE_YOUR_CALM: CALM, NGHTTP2_CANCEL: CANCEL } = constants

export interface GuardOptions {
  readonly limits: Limits
  readonly monotonic: () => number
  readonly strangers: Pick<Strangers, 'has'>
  /** Answers a request that does not come to its end. */
  readonly late: (answer: Http2Answer) => void
}

interface Counted extends Duplex {
  readonly bytesRead?: number
  readonly bytesWritten?: number
}

/**
 * Ends a connection whose peer makes work with something else than requests, is silent, or brings a request too slowly. What it costs
 * to look is paid once in a while, and not for each frame.
 */
export class Guard implements Swept {
  readonly #carrier: Carrier
  readonly #options: GuardOptions
  readonly #resets: Bucket
  readonly #controls: Bucket
  readonly #begun = new WeakMap<Line, number>()
  #requests = 0
  #before = { at: 0, read: 0, written: 0, body: 0, requests: 0 }
  #idleSince: number | undefined
  #closedAt: number | undefined

  constructor(carrier: Carrier, options: GuardOptions) {
    const { limits, monotonic } = options
    this.#carrier = carrier
    this.#options = options
    this.#resets = new Bucket({ ...RESETS, monotonic })
    this.#controls = new Bucket({ burst: limits.messageBurst, perSecond: limits.messagesPerSecond, monotonic })
    this.#before.at = monotonic()
    const controlled = (): void => {
      if (!this.#controls.take(1)) this.#cut()
    }
    const { session } = carrier
    session.on('ping', controlled)
    session.on('remoteSettings', controlled)
  }

  /** A stream has begun. */
  watch(line: Line, answer: Http2Answer): void {
    this.#requests++
    const { stream } = answer
    stream.once('aborted', () => {
      // What this side breaks off is not the client's doing.
      if (!line.destroyed && !this.#resets.take(1)) this.#cut()
    })
  }

  sweep(now: number): void {
    const { session, socket } = this.#carrier
    if (socket.destroyed) return
    if (session.closed) {
      this.#closedAt ??= now
      if (this.#carrier.lines.size === 0 && now - this.#closedAt >= LEAVE_MS) socket.destroy()
    } else {
      this.#checkIdle(now)
    }
    this.#checkNoise()
    this.#checkRequests(now)
  }

  #checkIdle(now: number): void {
    const { lines, session, socket } = this.#carrier
    if (lines.size > 0) this.#idleSince = undefined
    else this.#idleSince ??= now
    const most = this.#options.strangers.has(socket) ? this.#options.limits.headersTimeoutMs : IDLE_MS
    if (this.#idleSince !== undefined && now - this.#idleSince >= most) session.close()
  }

  /** Node tells of requests, bodies, pings and settings. Of other frames it only knows the bytes. */
  #checkNoise(): void {
    const { limits, monotonic } = this.#options
    const { bytesRead: read = 0, bytesWritten: written = 0 } = this.#carrier.socket as Counted
    const after = { at: monotonic(), read, written, body: this.#carrier.bodyBytes, requests: this.#requests }
    const { at, ...before } = this.#before
    const seconds = Math.max(1, (after.at - at) / 1000)
    const requests = after.requests - before.requests
    const noise = read - before.read - (after.body - before.body) - requests * (limits.headerBytes + WINDOW_BYTES)
    this.#before = after
    if (noise > NOISE_BYTES * seconds + (written - before.written) * NOISE_FOR_READING) this.#cut()
  }

  #checkRequests(now: number): void {
    const { limits, late } = this.#options
    for (const line of this.#carrier.lines) {
      const { answer } = line
      if (!(answer instanceof Http2Answer) || answer.stream.endAfterHeaders || line.isOpen || answer.req.readableEnded) continue
      const since = this.#begun.get(line)
      if (since === undefined) this.#begun.set(line, now)
      else if (now - since < limits.requestTimeoutMs) continue
      else if (answer.headersSent) answer.stream.close(CANCEL)
      else late(answer)
    }
  }

  /** Tells the client that it asks too much (RFC 9113 §7), and closes the connection. */
  #cut(): void {
    const { session } = this.#carrier
    if (!session.destroyed) session.destroy(new Error('The client asks too much'), CALM)
  }
}
