import type { StoredResponse, Visitor } from '../../core/ports/session.ts'
import { isEnd } from '../../core/reading/ends.ts'
import { ABOUT_OTHERS, ABOUT_PAYMENTS, ABOUT_SESSIONS, alike, BESIDE_ANSWERS, tellBy, type Mapping } from '../../core/reading/mapping.ts'
import { bytesIn } from '../../protocol/base64.ts'
import type { ContentItem, ToolCall, ToolResult } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import type { EventOf, ServerEvent } from '../../protocol/events.ts'
import { isRecord, jsonIn, jsonText, type Slot } from '../../protocol/json.ts'
import type { Delta } from '../../protocol/server-events.ts'
import { wholeSamples } from '../../wire/audio/samples.ts'
import { paymentRefusal } from '../../wire/payment.ts'
import { partsOf, wordsOf } from './content.ts'
import { errorInfo, expired } from './errors.ts'
import { mediaFrames } from './frame.ts'
import { SOUND } from './sound.ts'

export interface NarratorOptions {
  readonly sessionId: string
  /** The client takes media as binary frames. */
  readonly binary: boolean
  /** Whether calls of a tool are shown. Not of the client's: the question shows those, and not what the agent says of them. */
  readonly showsTool: (name: string) => boolean
  readonly newId: () => string
}

/** What agents call pcm16 is told with its rate: a client would have to guess it. */
const PCM16 = `audio/pcm;rate=${SOUND.sample_rate}`

/** What is spoken, as a stream of its own. */
interface Speech {
  readonly id: string
  readonly format: string
  readonly mime: string
  readonly whole: (bytes: Uint8Array) => Uint8Array
  sequence: number
  /** What is known to be the last only when nothing follows. An empty last one would not do: Omnia's dashboard cannot play it. */
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
      'text: `chunk`; sound: `media_chunk` or a binary frame; calls and results of the agent’s own tools: `tool_call`, `tool_result`, ' +
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
    'payment.required': ['`error`', (narrator, event) => narrator.#error(paymentRefusal(event))],
    'usage.delta': ['in `ext` of `done`'],
    'response.done': [
      '`done`',
      (narrator, { response: { id, status, output, usage, extensions }, signature }) =>
        narrator.#end(output, { response_id: id, status, usage, signature, ...extensions }),
    ],
    'response.cancelled': [
      '`done`, `ext.status` is `cancelled`',
      (narrator, { response_id, partial_output = [] }) => narrator.#end(partial_output, { response_id, status: 'cancelled' }),
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
      [
        'thinking',
        'progress',
        'tool.call_done',
        'session.error',
        'x.plan',
        ...ABOUT_SESSIONS,
        ...ABOUT_OTHERS,
        ...ABOUT_PAYMENTS,
        ...BESIDE_ANSWERS,
      ],
      ['not told: no message for it'],
    ),
  }

  readonly #options: NarratorOptions
  readonly #chunkHead: string
  #tail = ''
  #frames: (string | Uint8Array)[] = []
  #speech: Speech | undefined
  /** The words of what is spoken, as far as they have come. */
  #transcript = ''
  #hasSpoken = false
  /** The agent's own calls, as far as their arguments have come; null: it was shown. */
  readonly #calls = new Map<string, ToolCall | null>()
  /** What is not told of the response that runs: what it says, or its end neither. */
  quiet: 'says' | 'all' | undefined
  /** The client was sent something that it may still be playing. */
  audible = false
  /** The client has heard this before: it is only to be known for what follows. */
  muted = false

  constructor(options: NarratorOptions) {
    this.#options = options
    this.#chunkHead = `${this.#head('chunk')},"content":`
  }

  /** What is told from now on is told at this time. */
  set now(now: number) {
    this.#tail = `,"timestamp":"${new Date(now).toISOString()}"}`
  }

  take(): readonly (string | Uint8Array)[] {
    const frames = this.#frames
    this.#frames = []
    return frames
  }

  /** What is too large for one message is told to be so. */
  tell(type: string, body: Slot = {}): void {
    if (this.muted) return
    try {
      this.#frames.push(this.#message(type, body))
    } catch (thrown) {
      this.#frames.push(this.#message('error', { error: errorInfo(UampError.from(thrown)) }))
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

  /** What there is of a response that died with the process. */
  recall({ id, status, output }: StoredResponse): void {
    this.#end(output, { response_id: id, status })
  }

  /** Whoever is asked to run a tool of this name consents, or not; that it has run nothing does not matter. */
  #approval({ approval_id: id, message, tool_call: call }: EventOf<'x.approval.request'>): void {
    const asked = shownCall({ id, name: call?.name ?? 'approval', arguments: call?.arguments ?? '' })
    this.tell('tool_call', { tool_call: { ...asked, consent_message: message } })
  }

  #error(error: EventOf<'response.error'>['error']): void {
    this.tell('error', { error: errorInfo(error) })
  }

  #delta(delta: Delta): void {
    switch (delta.type) {
      case 'text':
        return this.text(delta.text)
      case 'audio':
        // A chunk of a stream has no handle; one that has is the whole, and comes with the end.
        if (delta.content_id === undefined && typeof delta.audio === 'string') this.#speak(delta.audio, delta.format)
        return
      case 'tool_call':
        return this.#call(delta.tool_call)
      case 'tool_result':
        return this.#result(delta.tool_result)
      // With the end.
      case 'image':
      case 'video':
      case 'file':
      case 'thinking':
      case 'tool_progress':
    }
  }

  /** Arguments come in pieces. They are whole when they are an object: no beginning of one is. */
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
    this.tell('tool_result', { tool_result: failed ? { id, error: result } : { id, result: jsonIn(result) ?? result } })
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

  #newSpeech(format: string): Speech {
    const id = this.#options.newId().replaceAll('-', '').slice(0, 12)
    const speech = { id, format, sequence: 0, held: '' }
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
    // Of what was heard before the client has another stream.
    const sequence = this.muted ? 0 : speech.sequence++
    this.audible = true
    if (!binary) return this.tell('media_chunk', { media_chunk: { media_id: id, sequence, is_last: last, data, mime_type } })
    const meta = { session_id: sessionId, mime_type, ...(mime_type === PCM16 && SOUND) }
    const payload = speech.whole(bytesIn(data) ?? new Uint8Array())
    this.#push(...mediaFrames({ sequence, mediaId: id, meta, last, payload }))
  }

  /** What the protocol has no field for stands under `ext`, which its clients leave alone. */
  #end(output: readonly ContentItem[], ext: Slot): void {
    this.#endSpeech()
    if (this.quiet === 'all') return
    const content = wordsOf(output, this.#transcript)
    this.tell('done', { content, parts: partsOf(output, content, this.#hasSpoken), ext })
  }

  #push(...frames: readonly (string | Uint8Array)[]): void {
    if (!this.muted) this.#frames.push(...frames)
  }

  #message(type: string, body: Slot): string {
    const fields = JSON.stringify(body)
    return `${this.#head(type)}${fields === '{}' ? '' : `,${fields.slice(1, -1)}`}${this.#tail}`
  }

  #head(type: string): string {
    return `{"type":"${type}","session_id":${JSON.stringify(this.#options.sessionId)}`
  }
}

/** Arguments are an object here. */
function shownCall({ id, name, arguments: args }: ToolCall): Slot {
  const value = args.trim() === '' ? {} : jsonIn(args)
  return { id, name, arguments: isRecord(value) ? value : { value: value ?? args } }
}
