import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import { ABOUT_OTHERS, ABOUT_SESSIONS, alike, tellBy, type Mapping } from '../../core/reading/mapping.ts'
import { isWaiting, ResponseFold } from '../../core/reading/response-fold.ts'
import { isMedia, type ContentItem, type MediaItem } from '../../protocol/content.ts'
import { UampError, type ErrorCode } from '../../protocol/errors.ts'
import type { EventOf, ServerEvent } from '../../protocol/events.ts'
import { jsonText, uampIn, type Slot } from '../../protocol/json.ts'
import { paymentRefusal } from '../../protocol/payment-refusal.ts'
import type { Delta } from '../../protocol/server-events.ts'
import { mediaSource } from '../../wire/media-source.ts'
import type { Delta as Frame } from '../../envelope/schema.ts'
import { problemOf } from './errors.ts'
import { proposalId, type Proposal } from './proposals.ts'

/** Characters of a text, or of base64, in one frame: 48 KiB of bytes. Divisible by 4, so that each piece can be decoded alone. */
const PIECE = 64 * 1024

const encoder = new TextEncoder()

export interface FrameOptions {
  readonly stream: string
  readonly response: string
  /**
   * The time of all frames, in milliseconds since 1970: that of the response. A frame that is sent again has to be the same, and the log
   * does not have the time of each word.
   */
  readonly at: number
  /** Frames up to this one are only counted: the reader has them. */
  readonly known: number
  readonly onProposal?: ((proposal: Proposal) => void) | undefined
}

export interface NumberedFrame {
  readonly seq: number
  /** JSON in one line, with sorted members: as it is sent, and as it is hashed. */
  readonly text: string
}

/** The events of one response as the frames of a stream (UAMP envelope §5). The same response gives the same frames, byte for byte. */
export class FrameEncoder extends ResponseFold {
  static readonly mapping: Mapping<FrameEncoder> = {
    'response.created': ['not told: the stream is there when its message is accepted'],
    'response.delta': [
      'text: `chunk` with `text`; media: `chunk` with `chunk_b64` and `mime`; calls and results of the agent’s own tools: `progress`',
      (frames, { delta }) => frames.#delta(delta),
    ],
    thinking: ['`progress` with `thinking`', (frames, { content }) => frames.#tell('progress', { thinking: content })],
    'audio.delta': [
      '`chunk` with `chunk_b64` and `mime`',
      (frames, { audio, format = 'pcm16' }) => frames.#bytes(audio, { mime: format === 'pcm16' ? 'audio/pcm' : `audio/${format}` }),
    ],
    'transcript.delta': ['`chunk` with `text`', (frames, { transcript }) => frames.#text(transcript)],
    progress: ['`progress`', (frames, event) => frames.#progress(event)],
    'x.state.delta': ['`patch`', (frames, { delta: patch }) => frames.#tell('patch', { patch })],
    'x.state.snapshot': [
      '`patch` that replaces the whole',
      (frames, { snapshot: value }) => frames.#tell('patch', { patch: [{ op: 'replace', path: '', value }] }),
    ],
    'x.plan': ['`progress` with `plan`', (frames, { entries }) => frames.#tell('progress', { plan: entries })],
    'tool.call': ['`progress` with a `proposal`', (frames, event) => frames.#propose(event)],
    'x.approval.request': ['`progress` with a `proposal`', (frames, event) => frames.#propose(event)],
    'payment.required': ['`progress` with a `proposal` and 4.02', (frames, event) => frames.#propose(event)],
    'response.done': ['`done`, with the hash of all frames before it', (frames, event) => frames.#done(event)],
    'response.error': [
      '`error`',
      (frames, { error: { code, message, details } }) =>
        frames.#tell('error', problemOf(new UampError(code as ErrorCode, message, { ...(details && { details }) }))),
    ],
    'response.cancelled': ['`cancel`', (frames) => frames.#tell('cancel')],
    'usage.delta': ['added up: `usage` of `done`'],
    ...alike(
      [
        'tool.call_done',
        'audio.done',
        'transcript.done',
        'payment.accepted',
        'payment.balance',
        'payment.error',
        'session.error',
        'session.end',
        'x.messages.snapshot',
        'x.activity.snapshot',
        'x.activity.delta',
        'x.step.started',
        'x.step.finished',
        'x.subagent.started',
        'x.subagent.finished',
        'x.reasoning.encrypted',
        'x.custom',
        'x.raw',
        ...ABOUT_SESSIONS,
        ...ABOUT_OTHERS,
      ],
      ['not told: no frame for it'],
    ),
  }

  readonly #options: FrameOptions
  readonly #tail: string
  readonly #hash = sha256.create()
  #next = 0
  #spoke = false
  #frames: NumberedFrame[] = []

  constructor(options: FrameOptions) {
    super(options.response)
    this.#options = options
    this.#tail = `,"stream_id":${JSON.stringify(options.stream)},"ts":"${new Date(options.at).toISOString()}","type":`
  }

  /** The number of the next frame. */
  get next(): number {
    return this.#next
  }

  /** The hash of all frames so far, but for the last one of the stream: of each frame's text and a line feed, in hexadecimal digits. */
  get hash(): string {
    return bytesToHex(this.#hash.clone().digest())
  }

  /** The frames since the last call that the reader does not have. */
  drain(): NumberedFrame[] {
    const frames = this.#frames
    this.#frames = []
    return frames
  }

  /** The hot path: only the text itself is quoted. */
  text(text: string): void {
    if (this.running) this.#text(text)
  }

  protected get silent(): boolean {
    return !this.#spoke
  }

  protected begin(): void {}

  protected item(item: ContentItem): void {
    if (item.type === 'text') this.#text(item.text)
    else if (isMedia(item)) this.#media(item)
  }

  protected tell(event: ServerEvent): void {
    tellBy(FrameEncoder.mapping, this, event)
  }

  #text(text: string): void {
    for (let at = 0; at < text.length;) {
      let end = Math.min(at + PIECE, text.length)
      // Half of a surrogate pair is no text.
      if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end--
      this.#push('chunk', `{"text":${jsonText(text.slice(at, end))}}`)
      at = end
    }
  }

  #delta(delta: Delta): void {
    switch (delta.type) {
      case 'text':
        return this.#text(delta.text)
      case 'tool_call':
        return this.#tell('progress', { tool_call: delta.tool_call })
      case 'tool_result':
        return this.#tell('progress', { tool_result: delta.tool_result })
      case 'tool_progress':
        return this.#tell('progress', { tool_progress: delta.tool_progress })
      case 'thinking':
        return this.#tell('progress', { thinking: delta.thinking })
      case 'image':
      case 'audio':
      case 'video':
      case 'file':
        return this.#media(delta)
    }
  }

  #media(item: MediaItem): void {
    const source = mediaSource(item)
    const { content_id } = item
    const about = { ...(content_id !== undefined && { content_id }), ...(item.type === 'file' && { filename: item.filename }) }
    if (source && 'data' in source) return this.#bytes(source.data, { ...about, mime: source.mime })
    this.#tell('chunk', { ...about, ...(source && { mime: source.mime, url: source.url }) })
  }

  #bytes(base64: string, about: Slot): void {
    for (let at = 0; at < base64.length; at += PIECE) this.#tell('chunk', { ...about, chunk_b64: base64.slice(at, at + PIECE) })
  }

  #progress({ target, target_id, stage, message, percent, step, total_steps }: EventOf<'progress'>): void {
    this.#tell('progress', { pct: percent, message, stage, target, target_id, step, total_steps })
  }

  /** A question of the agent's. `confirm` and `deny` that name its id answer it. */
  #propose(event: EventOf<'tool.call' | 'x.approval.request' | 'payment.required'>): void {
    const { response, onProposal } = this.#options
    const id = proposalId(response, this.questions.length)
    if (event.type === 'tool.call') {
      const { call_id, name, arguments: args } = event
      onProposal?.({ id, response, question: { type: event.type, call_id } })
      return this.#tell('progress', { proposal: { id, kind: 'tool', name, arguments: args } })
    }
    if (event.type === 'x.approval.request') {
      const { approval_id, message, tool_call, options } = event
      onProposal?.({ id, response, question: { type: event.type, approval_id } })
      return this.#tell('progress', { proposal: { id, kind: 'approval', message, tool_call, options } })
    }
    onProposal?.({ id, response, question: { type: event.type } })
    const how = 'Confirm the proposal with a payment as its body'
    this.#tell('progress', { proposal: { id, kind: 'payment', ...problemOf(paymentRefusal(event, how)) } })
  }

  #done({ response: { usage = this.usage, extensions, status, ...rest } }: EventOf<'response.done'>): void {
    const { waiting: _, ...uamp } = uampIn(extensions)
    const isQuestion = isWaiting({ response: { usage, extensions, status, ...rest } as EventOf<'response.done'>['response'] })
    this.#tell('done', {
      status: isQuestion ? 'waiting' : status,
      stream_sha256: this.hash,
      ...(usage && { usage }),
      ...(Object.keys(uamp).length > 0 && { uamp }),
    })
  }

  #tell(type: Frame['type'], payload: Slot = {}): void {
    this.#push(type, JSON.stringify(payload))
  }

  #push(type: Frame['type'], payload: string): void {
    this.#spoke = true
    const seq = this.#next++
    const text = `{"delta_seq":${seq},"payload":${payload}${this.#tail}"${type}"}`
    if (!this.ended) this.#hash.update(encoder.encode(`${text}\n`))
    if (seq > this.#options.known) this.#frames.push({ seq, text })
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}
