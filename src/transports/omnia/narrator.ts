import type { StoredResponse, Visitor } from '../../core/ports/session.ts'
import { isEnd } from '../../core/reading/response-fold.ts'
import { ABOUT_OTHERS, ABOUT_PAYMENTS, ABOUT_SESSIONS, alike, BESIDE_ANSWERS, tellBy, type Mapping } from '../../core/reading/mapping.ts'
import { bytesIn } from '../../protocol/base64.ts'
import type { ContentItem, MediaItem, ToolCall, ToolResult } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import type { EventOf, ServerEvent } from '../../protocol/events.ts'
import { isRecord, jsonIn, jsonText, type Slot } from '../../protocol/json.ts'
import type { Delta } from '../../protocol/server-events.ts'
import { wholeSamples } from '../../wire/audio/samples.ts'
import { mediaSource } from '../../wire/media-source.ts'
import { paymentRefusal } from '../../protocol/payment-refusal.ts'
import { isReplayed, partsOf, wordsOf } from './content.ts'
import { errorInfo, expired } from './errors.ts'
import { mediaFrames } from './frame.ts'
import { SOUND } from './sound.ts'

export interface NarratorOptions {
  readonly sessionId: string
  /** The client takes media as binary frames. */
  readonly binary: boolean
  /** Whether calls of this tool are shown. Those of the client's tools are shown by the question to run them. */
  readonly showsTool: (name: string) => boolean
  readonly newId: () => string
  /** Keeps media of an answer, and gives the URLs. Never rejects. Undefined: nothing is kept. */
  readonly keep?: ((items: readonly MediaItem[], response: string) => Promise<ReadonlyMap<MediaItem, string>>) | undefined
}

/** A message that is written when it is known. */
type Frame = string | Uint8Array | Promise<string>

/** pcm16, with its rate, which a client would have to guess. */
const PCM16 = `audio/pcm;rate=${SOUND.sample_rate}`

/** Characters of base64 in a piece of a video: 48 KiB. Divisible by 4, so that each piece can be decoded alone. */
const VIDEO_PIECE = 64 * 1024

/** A stream of sound, or of a video. */
interface Speech {
  readonly id: string
  readonly format: string
  readonly mime: string
  readonly whole: (bytes: Uint8Array) => Uint8Array
  sequence: number
  /** The newest piece, held back because only the end shows that it is the last. Omnia's dashboard cannot play an empty last piece. */
  held: string
}

/** Server events as messages of Omnia, gathered until they are written in one piece. */
export class Narrator implements Visitor {
  static readonly mapping: Mapping<Narrator> = {
    'response.created': [
      'not told: an answer begins with its first word',
      (narrator) => {
        narrator.#hasSpoken = false
        narrator.#transcript = ''
        narrator.#calls.clear()
      },
    ],
    'response.delta': [
      'text: `chunk`; sound and video: `media_chunk` or a binary frame; calls and results of the agent’s own tools: `tool_call`, `tool_result`, ' +
        'where the operator wants that; other media: in `parts` of `done`',
      (narrator, { delta }) => narrator.#delta(delta),
    ],
    'audio.delta': ['`media_chunk` or a binary frame', (narrator, { audio, format }) => narrator.#speak(audio, format)],
    'audio.done': ['the last of them', (narrator) => narrator.#endSpeech()],
    'transcript.delta': ['`chunk`', (narrator, { transcript }) => narrator.#hear(transcript)],
    'transcript.done': [
      'what of the words did not come before',
      (narrator, { transcript }) => {
        if (transcript?.startsWith(narrator.#transcript)) narrator.#hear(transcript.slice(narrator.#transcript.length))
      },
    ],
    'tool.call': [
      '`tool_call`',
      (narrator, { call_id: id, name, arguments: args }) =>
        narrator.tell('tool_call', { tool_call: shownCall({ id, name, arguments: args }) }),
    ],
    'x.approval.request': ['`tool_call` with `consent_message`', (narrator, event) => narrator.#approval(event)],
    'payment.required': [
      '`error`',
      (narrator, event) => narrator.#error(paymentRefusal(event, 'Send the message again with "metadata.payment_token"')),
    ],
    'usage.delta': ['in `ext` of `done`'],
    'response.done': [
      '`done`',
      (narrator, { response: { id, status, output, usage, extensions }, signature }) =>
        narrator.#end(output, id, { status, usage, signature, ...extensions }),
    ],
    'response.cancelled': [
      '`done`, `ext.status` is `cancelled`',
      (narrator, { response_id, partial_output = [] }) => narrator.#end(partial_output, response_id, { status: 'cancelled' }),
    ],
    'response.error': [
      '`error`',
      (narrator, { error }) => {
        narrator.#endSpeech()
        if (narrator.quiet !== 'all') narrator.#error(error)
      },
    ],
    'session.end': ['`error`', (narrator) => narrator.#error(expired())],
    ...alike(
      ['thinking', 'progress', 'tool.call_done', 'session.error', 'x.plan', ...ABOUT_SESSIONS, ...ABOUT_OTHERS, ...BESIDE_ANSWERS],
      ['not told: no message for it'],
    ),
    ...alike(ABOUT_PAYMENTS, [
      'an `ext` message, for clients that ask for those',
      (narrator: Narrator, event: ServerEvent) => narrator.#extra(event),
    ] as const),
  }

  readonly #options: NarratorOptions
  readonly #chunkHead: string
  #tail = ''
  #frames: Frame[] = []
  #isWaiting = false
  #speech: Speech | undefined
  /** The words of the speech so far. */
  #transcript = ''
  #hasSpoken = false
  /** The agent's own calls, with their arguments so far; null: it was shown. */
  readonly #calls = new Map<string, ToolCall | null>()
  /** What is kept from the client of the running response: `says`, its words; `all`, its end too. */
  quiet: 'says' | 'all' | undefined
  /** The client wants events that Omnia has no message for. */
  tellsEvents = false
  /** The client may still be playing sound. */
  audible = false
  /** The client has this already: it is read only because later events depend on it. */
  muted = false

  constructor(options: NarratorOptions) {
    this.#options = options
    this.#chunkHead = `${this.#head('chunk')},"content":`
  }

  /** The timestamp of messages from now on. */
  set now(now: number) {
    this.#tail = `,"timestamp":"${new Date(now).toISOString()}"}`
  }

  take(): readonly (string | Uint8Array)[] | Promise<(string | Uint8Array)[]> {
    const frames = this.#frames
    this.#frames = []
    if (!this.#isWaiting) return frames as (string | Uint8Array)[]
    this.#isWaiting = false
    return Promise.all(frames)
  }

  /** A message that is too large becomes an error. */
  tell(type: string, body: Slot = {}): void {
    if (!this.muted) this.#frames.push(this.#told(type, body))
  }

  #told(type: string, body: Slot): string {
    try {
      return this.#message(type, body)
    } catch (thrown) {
      return this.#message('error', { error: errorInfo(UampError.from(thrown)) })
    }
  }

  /** The hot path: only the text itself is quoted. */
  text(text: string): void {
    if (text !== '' && this.quiet === undefined && !this.muted) this.#frames.push(this.#chunkHead + jsonText(text) + this.#tail)
  }

  event(event: ServerEvent): void {
    if (this.quiet !== undefined && event.type !== 'response.created' && !isEnd(event)) return
    tellBy(Narrator.mapping, this, event)
  }

  /** Tells what is left of a response that died with the process. */
  recall({ id, status, output }: StoredResponse): void {
    this.#end(output, id, { status })
  }

  /** Asked as a tool call: the client's result is the user's consent. */
  #approval({ approval_id: id, message, tool_call: call }: EventOf<'x.approval.request'>): void {
    const asked = shownCall({ id, name: call?.name ?? 'approval', arguments: call?.arguments ?? '' })
    this.tell('tool_call', { tool_call: { ...asked, consent_message: message } })
  }

  /** An event that Omnia has no message for. A client may not expect others, so it is told on request. */
  #extra({ session_id: _, seq: __, event_id: ___, timestamp: ____, ...event }: ServerEvent): void {
    if (this.tellsEvents) this.tell('ext', { ext: { event } })
  }

  #error(error: EventOf<'response.error'>['error']): void {
    this.tell('error', { error: errorInfo(error) })
  }

  #delta(delta: Delta): void {
    switch (delta.type) {
      case 'text':
        return this.text(delta.text)
      case 'audio':
        // A piece of a stream has no content id. The whole has one, and comes with the end.
        if (delta.content_id === undefined && typeof delta.audio === 'string') this.#speak(delta.audio, delta.format)
        return
      case 'tool_call':
        return this.#call(delta.tool_call)
      case 'tool_result':
        return this.#result(delta.tool_result)
      case 'video':
        return this.#show(delta)
      // Told with the end, if at all.
      case 'image':
      case 'file':
      case 'thinking':
      case 'tool_progress':
    }
  }

  /** Arguments come in pieces. They are whole once they parse as an object. */
  #call({ id, name, arguments: piece }: ToolCall): void {
    if (!this.#options.showsTool(name) || this.#calls.get(id) === null) return
    const call = { id, name, arguments: (this.#calls.get(id)?.arguments ?? '') + piece }
    this.#calls.set(id, call)
    if (call.arguments.trimEnd().endsWith('}') && isRecord(jsonIn(call.arguments))) this.#showCall(call)
  }

  #showCall(call: ToolCall): void {
    this.#calls.set(call.id, null)
    this.tell('tool_call', { tool_call: shownCall(call) })
  }

  #result({ call_id: id, result, is_error: failed }: ToolResult): void {
    const call = this.#calls.get(id)
    if (call === undefined) return
    if (call) this.#showCall(call)
    this.#calls.delete(id)
    this.tell('tool_result', { tool_result: failed ? { id, error: result, code: 'TOOL_ERROR' } : { id, result: jsonIn(result) ?? result } })
  }

  #hear(words: string): void {
    this.#transcript += words
    this.text(words)
  }

  #speak(base64: string, format = 'pcm16'): void {
    this.#hasSpoken = true
    if (this.#speech) this.#piece(this.#speech, false)
    this.#speech ??= this.#newSpeech(format)
    this.#speech.held = base64
  }

  /** A video comes whole from its agent, and goes to the client in pieces, so that it can begin to play. */
  #show(video: MediaItem): void {
    const source = mediaSource(video)
    if (!source || !('data' in source)) return
    const stream: Speech = { ...this.#newStream(source.mime), mime: source.mime, whole: (bytes) => bytes }
    for (let at = 0; at < source.data.length; at += VIDEO_PIECE) {
      stream.held = source.data.slice(at, at + VIDEO_PIECE)
      this.#piece(stream, at + VIDEO_PIECE >= source.data.length)
    }
  }

  #newStream(format: string) {
    return { id: this.#options.newId().replaceAll('-', '').slice(0, 12), format, sequence: 0, held: '' }
  }

  #newSpeech(format: string): Speech {
    const speech = this.#newStream(format)
    if (format === 'pcm16') return { ...speech, mime: PCM16, whole: wholeSamples() }
    return { ...speech, mime: format.includes('/') ? format : `audio/${format}`, whole: (bytes) => bytes }
  }

  #endSpeech(): void {
    if (this.#speech && this.quiet === undefined) this.#piece(this.#speech, true)
    this.#speech = undefined
  }

  #piece(speech: Speech, last: boolean): void {
    const { binary, sessionId } = this.#options
    const { id, mime: mime_type, held: data } = speech
    // A client that came back has the earlier pieces as another stream.
    const sequence = this.muted ? 0 : speech.sequence++
    this.audible = true
    if (!binary) return this.tell('media_chunk', { media_chunk: { media_id: id, sequence, is_last: last, data, mime_type } })
    const meta = { session_id: sessionId, mime_type, ...(mime_type === PCM16 && SOUND) }
    const payload = speech.whole(bytesIn(data) ?? new Uint8Array())
    const frames = mediaFrames({ sequence, mediaId: id, meta, last, payload })
    if (!this.muted) this.#frames.push(...frames)
  }

  /** `ext` has what the protocol has no field for; its clients ignore it. */
  #end(output: readonly ContentItem[], response: string, more: Slot): void {
    this.#endSpeech()
    if (this.quiet === 'all') return
    const ext = { response_id: response, ...more }
    const text = wordsOf(output, this.#transcript)
    const hasSpoken = this.#hasSpoken
    const bodyOf = (replays?: ReadonlyMap<MediaItem, string>) => ({
      content: text,
      parts: partsOf(output, { text, hasSpoken, replays }),
      ext,
    })
    const kept = output.filter((item) => isReplayed(item, hasSpoken))
    const { keep } = this.#options
    if (!keep || kept.length === 0 || this.muted) return this.tell('done', bodyOf())
    this.#isWaiting = true
    this.#frames.push(keep(kept, response).then((replays) => this.#told('done', bodyOf(replays))))
  }

  #message(type: string, body: Slot): string {
    const fields = JSON.stringify(body)
    return `${this.#head(type)}${fields === '{}' ? '' : `,${fields.slice(1, -1)}`}${this.#tail}`
  }

  #head(type: string): string {
    return `{"type":"${type}","session_id":${JSON.stringify(this.#options.sessionId)}`
  }
}

/** In this protocol arguments are an object. */
function shownCall({ id, name, arguments: args }: ToolCall): Slot {
  const value = args.trim() === '' ? {} : jsonIn(args)
  return { id, name, arguments: isRecord(value) ? value : { value: value ?? args } }
}
