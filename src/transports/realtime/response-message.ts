import { joinBase64 } from '../../protocol/base64.ts'
import type { Encode } from './audio/formats.ts'
import type { Dialect, MessageItem, Part, Status } from './model.ts'
import type { Outbox } from './outbox.ts'

/** Characters of base64 that are kept of what an agent says in one answer. The client hears the rest, but nobody remembers it. */
const RECORDED = 8 * 1024 * 1024

/** A part of a message while it grows. */
interface OpenPart {
  readonly type: 'text' | 'audio'
  /** Where its events say that it is. */
  readonly place: object
  /** Its text, or what is spoken in it. */
  words: string
  readonly recording: Recording
  readonly sendWords: (delta: string) => void
  readonly sendSound: (delta: string) => void
}

export interface MessageOptions {
  readonly id: string
  readonly responseId: string
  readonly outputIndex: number
  readonly dialect: Dialect
  readonly out: Outbox
  readonly encode: Encode
}

/** One message of an answer while it grows. It has at most one part of text and one of audio, in the order of their first words. */
export class ResponseMessage {
  readonly id: string
  readonly #options: MessageOptions
  readonly #parts: OpenPart[] = []

  constructor(options: MessageOptions) {
    this.id = options.id
    this.#options = options
  }

  addText(text: string): void {
    this.#grow('text', text)
  }

  addTranscript(text: string): void {
    this.#grow('audio', text)
  }

  addAudio(pcm16: string): void {
    const part = this.#part('audio')
    part.recording.add(pcm16)
    const audio = this.#options.encode(pcm16)
    if (audio !== '') part.sendSound(audio)
  }

  /** The item so far. */
  item(status: Status): MessageItem {
    const content = this.#parts.map(({ type, words, recording }): Part => {
      return type === 'text' ? { type, text: words } : { type, audio: recording.whole(), transcript: words }
    })
    return { type: 'message', id: this.id, role: 'assistant', status, content }
  }

  /** Tells that each part is complete. */
  close(): void {
    const { out, dialect } = this.#options
    const { names } = dialect
    for (const { type, place, words } of this.#parts) {
      const said = type === 'text' ? { text: words } : { transcript: words }
      if (type === 'audio') out.tell({ type: `${names.audio}.done`, ...place })
      out.tell({ type: `${type === 'text' ? names.text : names.transcript}.done`, ...place, ...said })
      out.tell({ type: 'response.content_part.done', ...place, part: { type, ...said } })
    }
  }

  #grow(type: OpenPart['type'], words: string): void {
    const part = this.#part(type)
    part.words += words
    part.sendWords(words)
  }

  #part(type: OpenPart['type']): OpenPart {
    return this.#parts.find((part) => part.type === type) ?? this.#open(type)
  }

  #open(type: OpenPart['type']): OpenPart {
    const { out, dialect, responseId, outputIndex } = this.#options
    const { names } = dialect
    const place = { response_id: responseId, item_id: this.id, output_index: outputIndex, content_index: this.#parts.length }
    out.tell({ type: 'response.content_part.added', ...place, part: type === 'text' ? { type, text: '' } : { type, transcript: '' } })
    const part: OpenPart = {
      type,
      place,
      words: '',
      recording: new Recording(),
      sendWords: out.deltas({ type: `${type === 'text' ? names.text : names.transcript}.delta`, ...place }),
      sendSound: out.deltas({ type: `${names.audio}.delta`, ...place }),
    }
    this.#parts.push(part)
    return part
  }
}

/** What an agent says, put together from its pieces. */
class Recording {
  readonly #pieces: string[] = []
  #room = RECORDED

  add(piece: string): void {
    // After one piece that does not fit none is added: the recording would have a hole.
    this.#room = piece.length > this.#room ? 0 : this.#room - piece.length
    if (this.#room > 0) this.#pieces.push(piece)
  }

  whole(): string {
    try {
      return joinBase64(this.#pieces)
    } catch {
      // Not base64: there is nothing to keep.
      return ''
    }
  }
}
