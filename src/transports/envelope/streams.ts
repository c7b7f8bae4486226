import { principalKey } from '../../core/basics/principal.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { Reader, Session, StoredResponse } from '../../core/ports/session.ts'
import type { Host, KnownCall } from '../../core/ports/transport.ts'
import { envelopeError } from '../../envelope/codes.ts'
import { FrameEncoder, type NumberedFrame } from './frames.ts'
import type { Proposals } from './proposals.ts'
import { streamAlias, type StreamNote } from './records.ts'
import type { Window, Windows } from './windows.ts'

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

/** A response, and who reads it as a stream. */
export interface Opened {
  readonly response: StoredResponse
  readonly note: StreamNote
  readonly session: Session
  readonly principal: Principal
}

/** The streams of frames that answers are (UAMP envelope §5). */
export class Streams {
  readonly #options: StreamsOptions

  constructor(options: StreamsOptions) {
    this.#options = options
  }

  /** Frames of a stream from after the one that its reader has (-1: none), as far as its window goes. */
  follow(opened: Opened, after: number, signal: AbortSignal): AsyncGenerator<Run, void> {
    const window = this.#options.windows.of(principalKey(opened.principal), opened.note.stream)
    let isOver = false
    const over = (): void => {
      if (!isOver) this.#letGo(opened)
      isOver = true
    }
    try {
      window.resumed(after)
    } catch (thrown) {
      over()
      throw thrown
    }
    // Whoever leaves before the first step ends a generator that never began.
    signal.addEventListener('abort', over, { once: true })
    return this.#runs(opened, { after, window, over, signal })
  }

  /** The response of a stream. Those of others are not there. */
  async open(id: string, { principal, agent, root }: Pick<KnownCall, 'principal' | 'agent' | 'root'>): Promise<Opened> {
    const { gateway } = this.#options.host
    const response = await gateway.response(streamAlias(id), principal)
    const isHere = response !== undefined && (root || response.agent === agent)
    const session = isHere ? await gateway.attach(response.session, principal, 'read') : undefined
    if (!response || !session) throw envelopeError('4.04', `There is no stream "${id}"`, 'stream_id')
    return { response, note: response.note as unknown as StreamNote, session, principal }
  }

  /** The hash of a whole stream whose response has ended: its frames are made once more. */
  async hashOf(opened: Opened, signal: AbortSignal): Promise<string> {
    const reader = this.#read(opened, signal)
    const encoder = this.#encoder(opened, Infinity)
    try {
      for await (const batch of reader) {
        encoder.take(batch)
        if (encoder.ended) break
      }
      return encoder.hash
    } finally {
      reader.close()
      this.#letGo(opened)
    }
  }

  #read({ session, response }: Opened, signal: AbortSignal): Reader {
    const reader = session.read({ after: response.after, extensions: 'all', committed: true, signal })
    if (reader.recovered) return reader
    reader.close()
    throw envelopeError('4.10', 'The stream is gone', 'evicted')
  }

  #encoder({ response, note, principal }: Opened, known: number): FrameEncoder {
    const { proposals } = this.#options
    return new FrameEncoder({
      stream: note.stream,
      response: response.id,
      at: response.createdAt,
      known,
      onProposal: (proposal) => proposals.add(principalKey(principal), proposal),
    })
  }

  async *#runs(
    opened: Opened,
    reading: { readonly after: number; readonly window: Window; readonly over: () => void; readonly signal: AbortSignal },
  ): AsyncGenerator<Run, void> {
    const { after, window, over, signal } = reading
    const { window: size } = opened.note
    const hold = this.#options.host.gateway.hold(opened.principal, 0)
    let reader: Reader | undefined
    try {
      reader = this.#read(opened, signal)
      const encoder = this.#encoder(opened, after)
      for await (const batch of reader) {
        encoder.take(batch)
        const frames = encoder.drain()
        if (encoder.ended && after >= encoder.next) throw gap(after, encoder.next - 1)
        hold.set(frames.reduce((sum, { text }) => sum + text.length, 0))
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
      hold.close()
      reader?.close()
      signal.removeEventListener('abort', over)
      over()
    }
  }

  #letGo({ session }: Opened): void {
    session
      .release()
      .catch((error: unknown) => this.#options.host.log('error', 'A session could not be let go', { session: session.id, error }))
  }
}

/** How many of these frames may be sent now. */
function endOfRoom(frames: readonly NumberedFrame[], { from, fits }: { readonly from: number; fits(seq: number): boolean }): number {
  let to = from + 1
  while (to < frames.length && fits((frames[to] as NumberedFrame).seq)) to++
  return to
}

function gap(after: number, newest: number): Error {
  return envelopeError('4.09', `The stream has no frame after ${after}: ${newest} is its last one`, 'gap')
}
