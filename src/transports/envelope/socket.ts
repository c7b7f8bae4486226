import type { KnownCall, Socket } from '../../core/ports/transport.ts'
import { reportError } from '../../core/edge/report-error.ts'
import { CODES, envelopeError } from '../../envelope/codes.ts'
import { envelopeIn } from '../../envelope/message.ts'
import { Delta, type Envelope } from '../../envelope/schema.ts'
import { strictObject } from '../../envelope/strict-json.ts'
import { UampError } from '../../protocol/errors.ts'
import { principalKey } from '../../core/basics/principal.ts'
import { parseValue } from '../../wire/parse.ts'
import { problemOf } from './errors.ts'
import type { Parts } from './parts.ts'
import type { Reading } from './streams.ts'

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
  /** The streams that it follows. Each has a signal of its own: one for all would have a listener for every stream. */
  readonly #following = new Map<string, AbortController>()
  #isGone = false
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
      this.#leave()
    }
  }

  /** Ends every stream that it follows. */
  #leave(): void {
    this.#isGone = true
    for (const leaving of this.#following.values()) leaving.abort()
  }

  /** Tells why nothing is taken here, and closes the connection. */
  async refuse(thrown: unknown): Promise<void> {
    await this.#refuse(thrown)
  }

  /** False: the connection is closed. */
  async #take(message: string | Uint8Array): Promise<boolean> {
    let members: Members | undefined
    try {
      members = strictObject(this.#unframed(message))
      if ('delta_seq' in members || !('intent' in members)) await this.#frame(members)
      else await this.#message(members)
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
    if (type !== 'progress') throw envelopeError('4.00', 'Frames to this server acknowledge others: their type is progress', 'type')
    const { note } = await this.#parts.streams.find(stream, this.#call)
    this.#parts.inbox.acknowledgeStream(principalKey(this.#call.principal), note.stream, payload['ack'])
  }

  async #message(members: Members): Promise<void> {
    const { admission, inbox, replies } = this.#parts
    const admitted = await admission.admit(envelopeIn(members), this.#call)
    const after = this.#startOf(admitted.envelope)
    const { stream } = await inbox.take(admitted, this.#call)
    const intent = stream === undefined ? 'confirm' : 'progress'
    await this.#send([JSON.stringify(await replies.to(admitted, { intent, stream }))])
    if (stream !== undefined) this.#follow(stream, { after, id: admitted.envelope.id })
  }

  /** After which frame the stream of a message begins here. Throws before anything is done where there is no room for one more. */
  #startOf({ intent, ext }: Envelope): number {
    if (intent !== 'ask' && intent !== 'subscribe') return -1
    if (this.#following.size >= STREAMS) {
      throw new UampError('rate_limited', `One connection may follow ${STREAMS} streams`, { details: { retry_after: 1 } })
    }
    // What else is in `ext` of an ask is between its sender and the agent.
    if (intent === 'ask') return -1
    const { after = -1 } = ext ?? {}
    if (typeof after === 'number' && Number.isSafeInteger(after) && after >= -1) return after
    throw envelopeError('4.00', 'ext.after must be the number of a frame', 'after')
  }

  /** Sends the frames of a stream as they come, beside those of others, and then the signed message that closes it. */
  #follow(stream: string, { after, id }: { readonly after: number; readonly id: string }): void {
    // The same message again only asks where its answer is.
    if (this.#following.has(stream)) return
    const leaving = new AbortController()
    this.#following.set(stream, leaving)
    this.#pass(stream, { after, signal: leaving.signal })
      .then(async (message) => message !== undefined && (await this.#close(message)))
      .catch((thrown: unknown) => this.#refuse(thrown, { id, stream_id: stream }))
      .finally(() => this.#following.delete(stream))
  }

  /** The id of the message that the stream answers. Undefined: the socket is gone. */
  async #pass(stream: string, reading: Reading): Promise<string | undefined> {
    const { streams } = this.#parts
    const found = await streams.find(stream, this.#call)
    for await (const { frames, isLast } of streams.follow(found, reading)) {
      await this.#send(frames.map(({ text }) => text))
      if (isLast) return found.note.message
    }
    if (this.#isGone) return undefined
    throw envelopeError('4.08', 'The stream is not followed any more: acknowledge its frames, and subscribe to it again', 'stalled')
  }

  async #close(id: string): Promise<void> {
    const outcome = await this.#parts.closings.of(id, this.#call)
    if ('envelope' in outcome) await this.#send([JSON.stringify(outcome.envelope)])
  }

  #send(texts: readonly string[]): Promise<void> {
    return this.#isGone ? Promise.resolve() : this.#socket.send(texts.map(framed))
  }

  /** Tells what is wrong, and with what; what must not go on is closed. False: it is. */
  async #refuse(thrown: unknown, members: Members = {}): Promise<boolean> {
    if (this.#isGone) return false
    const fields = { transport: 'envelope', message: 'An envelope on a socket failed', ...this.#call.trace.fields }
    const error = reportError(this.#parts.host, thrown, fields)
    const problem = problemOf(error)
    const { id, stream_id } = members
    const about = { ...(typeof id === 'string' && { reply_to: id }), ...(typeof stream_id === 'string' && { stream_id }) }
    const meaning = CODES[problem.code]
    // One conversation that is busy says nothing of the others.
    const isLocal = error.code === 'response_in_progress'
    // Nobody knows where the next frame would begin.
    const close = problem.reason === 'frame' ? 1002 : 'close' in meaning && !isLocal ? meaning.close : undefined
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
    this.#leave()
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
