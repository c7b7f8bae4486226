import type { KnownCall, Socket } from '../../core/ports/transport.ts'
import { reportError } from '../../core/edge/report-error.ts'
import { CODES, envelopeError } from '../../envelope/codes.ts'
import { readEnvelope } from '../../envelope/message.ts'
import { Delta } from '../../envelope/schema.ts'
import { strictObject } from '../../envelope/strict-json.ts'
import { UampError } from '../../protocol/errors.ts'
import { principalKey } from '../../core/basics/principal.ts'
import { parseValue } from '../../wire/parse.ts'
import type { Admitted } from './admission.ts'
import { problemOf } from './errors.ts'
import type { Parts } from './parts.ts'

/** Streams that one socket may follow at a time. */
const STREAMS = 64
const HEAD = 4
/** The stream that problems of the connection are told on: not on those of answers, which go on. */
const CONTROL = '/uamp/1/ws'

type Members = Readonly<Record<string, unknown>>

/** One connection of `/uamp/1/ws` (UAMP envelope §7): messages in both directions, and the frames of the streams that they open. */
export class EnvelopeSocket {
  readonly #parts: Parts
  readonly #socket: Socket
  readonly #call: KnownCall
  readonly #gone = new AbortController()
  readonly #following = new Set<string>()
  #problems = 0

  constructor(parts: Parts, socket: Socket, call: KnownCall) {
    this.#parts = parts
    this.#socket = socket
    this.#call = call
  }

  async run(): Promise<void> {
    try {
      for await (const message of this.#socket) if (!(await this.#take(message))) return
    } finally {
      this.#gone.abort()
    }
  }

  /** False: the connection is closed. */
  async #take(message: string | Uint8Array): Promise<boolean> {
    let members: Members | undefined
    try {
      const json = this.#unframed(message)
      members = strictObject(json)
      if ('delta_seq' in members || !('intent' in members)) await this.#frame(members)
      else await this.#message(json)
      return true
    } catch (thrown) {
      return this.#refuse(thrown, members)
    }
  }

  /** A message of WebSocket is one frame: four bytes of length, and JSON. Bare JSON as text is for development. */
  #unframed(message: string | Uint8Array): string | Uint8Array {
    if (typeof message === 'string') {
      if (this.#parts.settings.insecureDev) return message
      throw envelopeError('4.00', 'Send frames as binary messages: four bytes of length, and JSON', 'frame')
    }
    const length = message.length < HEAD ? -1 : new DataView(message.buffer, message.byteOffset).getUint32(0)
    if (length === message.length - HEAD) return message.subarray(HEAD)
    throw envelopeError('4.00', `The frame says that it has ${length} bytes, and has ${message.length - HEAD}`, 'frame')
  }

  /** An acknowledgement of frames. A client has no other ones to send. */
  async #frame(members: Members): Promise<void> {
    if (!('delta_seq' in members)) throw envelopeError('4.09', 'A frame needs its number, delta_seq', 'missing_field')
    const { stream_id: stream, type, payload = {} } = parseValue(Delta, members)
    if (type !== 'progress') throw envelopeError('4.00', 'Frames to this server acknowledge others: their type is progress', 'frame')
    const { note, session } = await this.#parts.streams.open(stream, this.#call)
    session.leave()
    this.#parts.inbox.acknowledgeStream(principalKey(this.#call.principal), note.stream, payload['ack'])
  }

  async #message(json: string | Uint8Array): Promise<void> {
    const { admission, inbox, replies } = this.#parts
    const admitted = await admission.admit(readEnvelope(json), this.#call)
    const { stream } = await inbox.take(admitted, this.#call)
    const intent = stream === undefined ? 'confirm' : 'progress'
    await this.#send([JSON.stringify(await replies.to(admitted, { intent, stream }))])
    if (stream !== undefined) this.#follow(stream, admitted)
  }

  /** Sends the frames of a stream as they come, beside those of others, and then the signed message that closes it. */
  #follow(stream: string, admitted: Admitted): void {
    // The same message again only asks where its answer is.
    if (this.#following.has(stream)) return
    if (this.#following.size >= STREAMS) {
      throw new UampError('overloaded', `One connection may follow ${STREAMS} streams`, { details: { retry_after: 1 } })
    }
    this.#following.add(stream)
    const { ext, id } = admitted.envelope
    const after = typeof ext?.['after'] === 'number' ? ext['after'] : -1
    this.#pass(stream, after)
      .then(async (message) => message !== undefined && (await this.#close(message)))
      .catch((thrown: unknown) => this.#refuse(thrown, { id, stream_id: stream }))
      .finally(() => this.#following.delete(stream))
  }

  /** The id of the message that the stream answers. Undefined: it did not come to its end. */
  async #pass(stream: string, after: number): Promise<string | undefined> {
    const { streams } = this.#parts
    const opened = await streams.open(stream, this.#call)
    for await (const { frames, isLast } of streams.follow(opened, after, this.#gone.signal)) {
      await this.#send(frames.map(({ text }) => text))
      if (isLast) return opened.note.message
    }
    return undefined
  }

  async #close(id: string): Promise<void> {
    const outcome = await this.#parts.closings.of(id, { ...this.#call, signal: this.#gone.signal })
    if ('envelope' in outcome) await this.#send([JSON.stringify(outcome.envelope)])
  }

  #send(texts: readonly string[]): Promise<void> {
    return this.#gone.signal.aborted ? Promise.resolve() : this.#socket.send(texts.map(framed))
  }

  /** Tells what is wrong, and with what; what must not go on is closed. False: it is. */
  async #refuse(thrown: unknown, members: Members = {}): Promise<boolean> {
    if (this.#gone.signal.aborted) return false
    const fields = { transport: 'envelope', message: 'An envelope on a socket failed', ...this.#call.trace.fields }
    const problem = problemOf(reportError(this.#parts.host, thrown, fields))
    const { id, stream_id } = members
    const about = { ...(typeof id === 'string' && { reply_to: id }), ...(typeof stream_id === 'string' && { stream_id }) }
    const meaning = CODES[problem.code]
    // Nobody knows where the next frame would begin.
    const close = problem.reason === 'frame' ? 1002 : 'close' in meaning ? meaning.close : undefined
    const frame: Delta = {
      delta_seq: this.#problems++,
      stream_id: CONTROL,
      ts: new Date(this.#parts.host.now()).toISOString(),
      type: close === undefined ? 'progress' : 'error',
      payload: { ...problem, ...about },
    }
    await this.#send([JSON.stringify(frame)])
    if (close === undefined) return true
    this.#socket.close(close, problem.code)
    this.#gone.abort()
    return false
  }
}

function framed(text: string): Uint8Array {
  const json = new TextEncoder().encode(text)
  const frame = new Uint8Array(HEAD + json.length)
  new DataView(frame.buffer).setUint32(0, json.length)
  frame.set(json, HEAD)
  return frame
}
