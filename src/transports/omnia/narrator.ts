import type { Visitor } from '../../core/ports/session.ts'
import { fromBase64 } from '../../protocol/base64.ts'
import type { ContentItem, ToolCall, ToolResult } from '../../protocol/content.ts'
import type { EventOf, ServerEvent } from '../../protocol/events.ts'
import { isRecord, jsonText, type Slot } from '../../protocol/json.ts'
import type { Delta } from '../../protocol/server-events.ts'
import { paymentRefusal } from '../../wire/payment.ts'
import { partsOf, wordsOf } from './content.ts'
import { errorInfo, omniaError, type ErrorInfo } from './errors.ts'
import { mediaFrames } from './frame.ts'
import { SOUND } from './sound.ts'

export interface NarratorOptions {
  readonly sessionId: string
  /** The client takes media as binary frames. */
  readonly binary: boolean
  /** Whether the agent's own tools are shown. */
  readonly toolMessages: boolean
  /** Whether a tool is the client's: then the question shows the call, and not what the agent says of it. */
  readonly isClientTool: (name: string) => boolean
  readonly newId: () => string
}

const NOTHING = new Uint8Array()

/** What is spoken, as a stream of its own. */
interface Speech {
  readonly id: string
  readonly mime: string
  sequence: number
  /** What is known to be the last only when nothing follows. An empty last one would not do: Omnia's dashboard cannot play it. */
  held: string | undefined
  /** The first half of a sample whose other half is still to come. */
  odd: Uint8Array
}

/** Server events as messages of Omnia, gathered until they are written in one piece. */
export class Narrator implements Visitor {
  readonly #options: NarratorOptions
  readonly #chunkHead: string
  #tail = ''
  #frames: (string | Uint8Array)[] = []
  #speech: Speech | undefined
  #hasSpoken = false
  /** The agent's own calls, as far as their arguments have come; null: it was shown. */
  readonly #calls = new Map<string, ToolCall | null>()
  /** The end of the response is not told: the client was told something else. */
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

  tell(type: string, body: Slot = {}): void {
    const fields = JSON.stringify(body)
    this.#frames.push(`${this.#head(type)}${fields === '{}' ? '' : `,${fields.slice(1, -1)}`}${this.#tail}`)
  }

  tellError(error: ErrorInfo): void {
    this.tell('error', { error })
  }

  /** The hot path: only the text itself is quoted. */
  text(text: string): void {
    if (text !== '') this.#frames.push(this.#chunkHead + jsonText(text) + this.#tail)
  }

  event(event: ServerEvent): void {
    switch (event.type) {
      case 'response.created':
        this.#hasSpoken = false
        this.#calls.clear()
        return
      case 'response.delta':
        return this.#delta(event.delta)
      case 'audio.delta':
        return this.#speak(event.audio, event.format)
      case 'audio.done':
        return this.#endSpeech()
      case 'transcript.delta':
        return this.text(event.transcript)
      case 'tool.call': {
        const { call_id: id, name, arguments: args } = event
        return this.tell('tool_call', { tool_call: shownCall({ id, name, arguments: args }) })
      }
      // Whoever is asked to run a tool of this name consents, or not; that it has run nothing does not matter.
      case 'x.approval.request': {
        const { approval_id: id, message, tool_call: call } = event
        const { name, arguments: args } = shownCall({ id, name: call?.name ?? 'approval', arguments: call?.arguments ?? '{}' })
        return this.tell('tool_call', { tool_call: { id, name, arguments: args, consent_message: message } })
      }
      case 'payment.required':
        return this.tellError(errorInfo(paymentRefusal(event).toBody()))
      case 'response.done':
        return this.#done(event)
      case 'response.cancelled':
        return this.#end(event.partial_output ?? [], { response_id: event.response_id, status: 'cancelled' })
      case 'response.error':
        this.#endSpeech()
        if (!this.muted) this.tellError(errorInfo(event.error))
        return
      case 'session.end':
        return this.tellError(errorInfo(omniaError('SESSION_EXPIRED', 'not_found', 'The session has ended: start a new one').toBody()))
      default:
    }
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
      default:
    }
  }

  /** Arguments come in pieces. They are whole when they are an object: no beginning of one is. */
  #call({ id, name, arguments: piece }: ToolCall): void {
    const { toolMessages, isClientTool } = this.#options
    if (!toolMessages || isClientTool(name) || this.#calls.get(id) === null) return
    const call = { id, name, arguments: (this.#calls.get(id)?.arguments ?? '') + piece }
    this.#calls.set(id, call)
    if (call.arguments.trimEnd().endsWith('}') && isRecord(parsed(call.arguments))) this.#showCall(call)
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
    this.tell('tool_result', { tool_result: failed ? { id, error: result } : { id, result: parsed(result) ?? result } })
  }

  #speak(base64: string, format = 'pcm16'): void {
    this.#hasSpoken = true
    const { newId } = this.#options
    const id = (): string => newId().replaceAll('-', '').slice(0, 12)
    const speech = (this.#speech ??= { id: id(), mime: mimeOf(format), sequence: 0, held: undefined, odd: NOTHING })
    if (speech.held !== undefined) this.#piece(speech, speech.held, false)
    speech.held = base64
  }

  #endSpeech(): void {
    if (this.#speech) this.#piece(this.#speech, this.#speech.held ?? '', true)
    this.#speech = undefined
  }

  #piece(speech: Speech, base64: string, last: boolean): void {
    const { binary, sessionId } = this.#options
    const { id: media_id, mime: mime_type } = speech
    const sequence = speech.sequence++
    if (!binary) return this.tell('media_chunk', { media_chunk: { media_id, sequence, is_last: last, data: base64, mime_type } })
    const sampled = mime_type === mimeOf('pcm16')
    const bytes = joined(speech.odd, bytesOf(base64))
    const whole = sampled ? bytes.length - (bytes.length % 2) : bytes.length
    speech.odd = bytes.subarray(whole)
    const meta = { session_id: sessionId, mime_type, ...(sampled && SOUND) }
    this.#frames.push(...mediaFrames({ sequence, mediaId: media_id, meta, last, payload: bytes.subarray(0, whole) }))
  }

  #done({ response, signature }: EventOf<'response.done'>): void {
    const { id, usage, extensions } = response
    this.#end(response.output, { response_id: id, status: response.status, usage, signature, ...extensions })
  }

  /** What the protocol has no field for stands under `ext`, which its clients leave alone. */
  #end(output: readonly ContentItem[], ext: Slot): void {
    this.#endSpeech()
    if (this.muted) return
    this.tell('done', { content: wordsOf(output), parts: partsOf(output, this.#hasSpoken), ext })
  }

  #head(type: string): string {
    return `{"type":"${type}","session_id":${JSON.stringify(this.#options.sessionId)}`
  }
}

/** Arguments are an object here. */
function shownCall({ id, name, arguments: args }: ToolCall): Slot & { arguments: Slot } {
  const value = args.trim() === '' ? {} : parsed(args)
  return { id, name, arguments: isRecord(value) ? value : { value: value ?? args } }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What agents call pcm16 is told with its rate: a client would have to guess it. */
function mimeOf(format: string): string {
  if (format.includes('/')) return format
  return format === 'pcm16' ? `audio/pcm;rate=${SOUND.sample_rate}` : `audio/${format}`
}

function bytesOf(base64: string): Uint8Array {
  try {
    return fromBase64(base64)
  } catch {
    return NOTHING
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  if (first.length === 0) return second
  const bytes = new Uint8Array(first.length + second.length)
  bytes.set(first)
  bytes.set(second, first.length)
  return bytes
}
