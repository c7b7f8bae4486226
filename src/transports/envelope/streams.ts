import { principalKey } from '../../core/basics/principal.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { Hold, Reader, Session, StoredResponse } from '../../core/ports/session.ts'
import type { Host, KnownCall } from '../../core/ports/transport.ts'
import { envelopeError } from '../../envelope/codes.ts'
import { FrameEncoder, type NumberedFrame } from './frames.ts'
import type { Proposals } from './proposals.ts'
import { streamAlias, type StreamNote } from './records.ts'
import type { Windows } from './windows.ts'

/** Characters of frames that are sent in one piece, unless one alone has more: each piece is copied on its way out. */
const PIECE = 512 * 1024

export interface StreamsOptions {
  readonly host: Host
  readonly windows: Windows
  readonly proposals: Proposals
}

/** Frames that may be sent together. */
export interface Run {
  readonly frames: readonly NumberedFrame[]
  /** The stream ends with them. */
  readonly isLast: boolean
}

/** The response of a stream, and who reads it. It holds nothing, so whoever leaves before the first frame leaves nothing behind. */
export interface FoundStream {
  readonly response: StoredResponse
  readonly note: StreamNote
  readonly principal: Principal
}

export interface Reading {
  /** The frame that the reader has; -1 for none. */
  readonly after: number
  readonly signal: AbortSignal
}

/** The streams of frames that answers are (UAMP envelope §5). */
export class Streams {
  readonly #options: StreamsOptions

  constructor(options: StreamsOptions) {
    this.#options = options
  }

  /** The response of a stream. Those of others are not there. */
  async find(id: string, { principal, agent, root }: Pick<KnownCall, 'principal' | 'agent' | 'root'>): Promise<FoundStream> {
    const response = await this.#options.host.gateway.response(streamAlias(id), principal)
    const isHere = response !== undefined && (root || response.agent === agent)
    if (!isHere) throw envelopeError('4.04', `There is no stream "${id}"`, 'stream_id')
    return { response, note: response.note as unknown as StreamNote, principal }
  }

  /** Frames of a stream, as far as its window goes. */
  async *follow(found: FoundStream, { after, signal }: Reading): AsyncGenerator<Run, void> {
    const { host, windows } = this.#options
    const { stream, window: size } = found.note
    const session = await this.#attach(found)
    const window = windows.of(principalKey(found.principal), stream)
    let hold: Hold | undefined
    let reader: Reader | undefined
    window.enter()
    try {
      hold = host.gateway.hold(found.principal, 0)
      reader = read(session, found, signal)
      const encoder = this.#encoder(found, after)
      for await (const batch of reader) {
        encoder.take(batch)
        const frames = encoder.drain()
        if (encoder.ended && after >= encoder.next) throw gap(after, encoder.next - 1)
        // Not before: a reader could name frames that were never sent, and so open the window of all.
        if (encoder.next > after) window.resumed(after)
        hold.grow(frames.reduce((sum, { text }) => sum + text.length, 0))
        for (let from = 0; from < frames.length;) {
          const next = frames[from] as NumberedFrame
          // A reader who does not acknowledge is let go, and may come back.
          if (!(await window.room(next.seq, size, signal))) return
          const to = endOfRoom(frames, { from, fits: (seq) => window.hasRoom(seq, size) })
          window.sent((frames[to - 1] as NumberedFrame).seq)
          yield { frames: frames.slice(from, to), isLast: encoder.ended && to === frames.length }
          from = to
        }
        if (encoder.ended) return
      }
    } finally {
      window.leave()
      hold?.close()
      reader?.close()
      this.#letGo(session)
    }
  }

  /** The hash of a whole stream whose response has ended: its frames are made once more. Throws `4.10` if its end cannot be read. */
  async hashOf(found: FoundStream): Promise<string> {
    const session = await this.#attach(found)
    let reader: Reader | undefined
    try {
      reader = read(session, found)
      const encoder = this.#encoder(found, Infinity)
      for await (const batch of reader) {
        encoder.take(batch)
        if (encoder.ended) return encoder.hash
      }
      throw gone()
    } finally {
      reader?.close()
      this.#letGo(session)
    }
  }

  async #attach({ response, principal }: FoundStream): Promise<Session> {
    const session = await this.#options.host.gateway.attach(response.session, principal, 'read')
    if (!session) throw gone()
    return session
  }

  #encoder({ response, note, principal }: FoundStream, known: number): FrameEncoder {
    const { proposals } = this.#options
    return new FrameEncoder({
      stream: note.stream,
      response: response.id,
      at: response.createdAt,
      known,
      // Nobody waits for an answer any more after the end.
      onProposal: response.status === 'open' ? (proposal) => proposals.add(principalKey(principal), proposal) : undefined,
    })
  }

  #letGo(session: Session): void {
    session
      .release()
      .catch((error: unknown) => this.#options.host.log('error', 'A session could not be let go', { session: session.id, error }))
  }
}

function read(session: Session, { response }: FoundStream, signal?: AbortSignal): Reader {
  const reader = session.read({ after: response.after, extensions: 'all', committed: true, ...(signal && { signal }) })
  if (reader.recovered) return reader
  reader.close()
  throw gone()
}

/** How many of these frames may be sent now, in one piece. */
function endOfRoom(frames: readonly NumberedFrame[], { from, fits }: { readonly from: number; fits(seq: number): boolean }): number {
  let size = 0
  for (let to = from; to < frames.length; to++) {
    const { seq, text } = frames[to] as NumberedFrame
    size += text.length
    if (to > from && (size > PIECE || !fits(seq))) return to
  }
  return frames.length
}

function gone(): Error {
  return envelopeError('4.10', 'The stream is gone', 'evicted')
}

function gap(after: number, newest: number): Error {
  return envelopeError('4.09', `The stream has no frame after ${after}: ${newest} is its last one`, 'gap')
}
