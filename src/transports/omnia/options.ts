import * as z from 'zod/mini'
import type { Blobs } from '../../core/ports/blobs.ts'
import type { ToolDefinition } from '../../protocol/tools.ts'

export interface OmniaOptions {
  /** Where uploads are kept. Default: uploads are refused with MEDIA_NOT_ENABLED. */
  readonly blobs?: Blobs
  /**
   * Show the agent's own tools, as `tool_call` and `tool_result`. Default: no, because today's clients take every call for one of
   * theirs and ask their user about it.
   */
  readonly toolMessages?: boolean
  /** Tools that every client here has. The protocol has no way for a client to name them; clients that know us send `ext.tools`. */
  readonly clientTools?: readonly ToolDefinition[]
  readonly limits?: Partial<OmniaLimits>
}

/** What a client may do, and what happens beyond that. */
export const OMNIA_LIMITS = {
  /** A client that is silent for so long is pinged (Omnia WebSocket protocol, Connection Health). */
  pingIntervalMs: 30_000,
  /** One that does not answer within this is cut. */
  pongTimeoutMs: 60_000,
  /** Bytes of a message: close 1009. */
  messageBytes: 16 * 1024 * 1024,
  /** Messages of text on one connection: RATE_LIMITED, and the message is dropped. */
  messagesPerSecond: 50,
  messageBurst: 100,
  /** Bytes of binary frames on one connection: RATE_LIMITED, and the frame is dropped. Frames are not counted, as sound comes in many. */
  mediaBytesPerSecond: 2 * 1024 * 1024,
  mediaBurstBytes: 16 * 1024 * 1024,
  /** Characters of base64 in one message, with what it refers to: INVALID_MESSAGE. */
  inlineLength: 15 * 1024 * 1024,
  /** Time for a client to say that it works on a tool call: the call fails. */
  toolAckMs: 5_000,
  /** Time for the result after that: the call fails. */
  toolResultMs: 60_000,
  /** Bytes of an upload: 413. An agent must be able to hold it in one message. */
  uploadBytes: 10 * 1024 * 1024,
  /** Time for the bytes of an upload to come: 410. */
  uploadMs: 15 * 60_000,
  /** How long an upload is kept: 410. */
  mediaMs: 24 * 3_600_000,
  /** Uploads that one principal may have: 429. */
  uploadsPerPrincipal: 256,
}

export type OmniaLimits = Readonly<typeof OMNIA_LIMITS>

/** The largest delay of a timer: a longer one fires at once. */
const MOST = 2 ** 31 - 1

export const Limit = z.int('must be a whole number').check(z.minimum(1), z.maximum(MOST))
