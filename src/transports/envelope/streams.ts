import { principalKey } from '../../core/basics/principal.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { Hold, Reader, Session, StoredResponse } from '../../core/ports/session.ts'
import type { Host, KnownCall, Streamed } from '../../core/ports/transport.ts'
import { envelopeError } from '../../envelope/codes.ts'
import { SSE_HEADERS, sseLine } from '../../wire/sse.ts'
import { problemOf } from './errors.ts'
import { FrameEncoder, type NumberedFrame } from './frames.ts'
import type { Proposals } from './proposals.ts'
import { streamAlias, type StreamNote } from './records.ts'
import type { Window, Windows } from './windows.ts'

/** How soon an `EventSource` comes back. */
const RETRY = 'retry: 2000\n\n'
const HEARTBEAT = ': hb\n\n'

export interface StreamsOptions {
  readonly host: Host
  readonly windows: Windows
  readonly proposals: Proposals
}

/** A response, and who reads it as a stream. */
interface Opened {
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

  /** `GET /v1/stream/{id}`. `after`: the frame that the reader has; -1 for none. */
  async serve(id: string, after: number, call: KnownCall): Promise<Streamed> {
    const { host, windows } = this.#options
    const opened = await this.open(id, call)
    const { principal } = call
    const window = windows.of(principalKey(principal), opened.note.stream)
    window.resumed(after)
    const hold = host.gateway.hold(principal, 0)
    return {
      status: 200,
      headers: SSE_HEADERS,
      frames: this.#frames(opened, { after, window, hold, signal: call.signal }),
      heartbeat: HEARTBEAT,
      failure: (error) => `event: problem\n${sseLine(JSON.stringify(problemOf(error)))}`,
    }
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
      this.#leave(reader, opened)
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

  async *#frames(
    opened: Opened,
    reading: { readonly after: number; readonly window: Window; readonly hold: Hold; readonly signal: AbortSignal },
  ): AsyncGenerator<string, string | undefined> {
    const { after, window, hold, signal } = reading
    const { window: size } = opened.note
    let reader: Reader | undefined
    try {
      yield RETRY
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
          if (!(await window.room(next.seq, size, signal))) return undefined
          const to = endOfRoom(frames, { from, fits: (seq) => window.hasRoom(seq, size) })
          window.sent((frames[to - 1] as NumberedFrame).seq)
          const text = frames.slice(from, to).map(line).join('')
          from = to
          if (encoder.ended && from === frames.length) return text
          yield text
        }
        if (encoder.ended) return undefined
      }
      return undefined
    } finally {
      hold.close()
      this.#leave(reader, opened)
    }
  }

  #leave(reader: Reader | undefined, { session }: Opened): void {
    reader?.close()
    session
      .release()
      .catch((error: unknown) => this.#options.host.log('error', 'A session could not be let go', { session: session.id, error }))
  }
}

function line({ seq, text }: NumberedFrame): string {
  return sseLine(text, seq)
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
