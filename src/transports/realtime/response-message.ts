import { joinBase64 } from '../../protocol/base64.ts'
import type { Encode } from './audio/formats.ts'
import type { Dialect, MessageItem, Part, Status } from './model.ts'
import type { Outbox } from './outbox.ts'

/** Characters of base64 that are kept of what an agent says in one answer. The client hears the rest, but nobody remembers it. */
const RECORDED = 8 * 1024 * 1024

interface OpenText {
  readonly index: number
  text: string
  readonly send: (delta: string) => void
}

interface OpenAudio {
  readonly index: number
  transcript: string
  readonly recording: Recording
  readonly send: (delta: string) => void
  readonly sendTranscript: (delta: string) => void
}

export interface MessageOptions {
  readonly id: string
  readonly responseId: string
  readonly outputIndex: number
  readonly dialect: Dialect
  readonly out: Outbox
  readonly encode: Encode
}

/** The parts of one message of an answer while they grow: at most one of text and one of audio, in the order of their first word. */
export class ResponseMessage {
  readonly id: string
  readonly #options: MessageOptions
  readonly #place: { readonly response_id: string; readonly item_id: string; readonly output_index: number }
  #parts = 0
  #text: OpenText | undefined
  #audio: OpenAudio | undefined

  constructor(options: MessageOptions) {
    this.id = options.id
    this.#options = options
    this.#place = { response_id: options.responseId, item_id: options.id, output_index: options.outputIndex }
  }

  addText(text: string): void {
    const part = (this.#text ??= this.#openText())
    part.text += text
    part.send(text)
  }

  addAudio(pcm16: string): void {
    const part = (this.#audio ??= this.#openAudio())
    part.recording.add(pcm16)
    const audio = this.#options.encode(pcm16)
    if (audio !== '') part.send(audio)
  }

  addTranscript(text: string): void {
    const part = (this.#audio ??= this.#openAudio())
    part.transcript += text
    part.sendTranscript(text)
  }

  /** The item as it stands. */
  item(status: Status): MessageItem {
    const parts: Part[] = []
    if (this.#text) parts[this.#text.index] = { type: 'text', text: this.#text.text }
    if (this.#audio) {
      const { index, transcript, recording } = this.#audio
      parts[index] = { type: 'audio', audio: recording.whole(), transcript }
    }
    return { type: 'message', id: this.id, role: 'assistant', status, content: parts }
  }

  /** Says of each part that it is whole. */
  close(): void {
    const { out, dialect } = this.#options
    const { names } = dialect
    for (let index = 0; index < this.#parts; index++) {
      const place = { ...this.#place, content_index: index }
      if (this.#text?.index === index) {
        const { text } = this.#text
        out.tell({ type: `${names.text}.done`, ...place, text })
        out.tell({ type: 'response.content_part.done', ...place, part: { type: 'text', text } })
      } else if (this.#audio) {
        const { transcript } = this.#audio
        out.tell({ type: `${names.audio}.done`, ...place })
        out.tell({ type: `${names.transcript}.done`, ...place, transcript })
        out.tell({ type: 'response.content_part.done', ...place, part: { type: 'audio', transcript } })
      }
    }
  }

  #openText(): OpenText {
    const place = this.#openPart({ type: 'text', text: '' })
    return {
      index: place.content_index,
      text: '',
      send: this.#options.out.deltas({ type: `${this.#options.dialect.names.text}.delta`, ...place }),
    }
  }

  #openAudio(): OpenAudio {
    const place = this.#openPart({ type: 'audio', transcript: '' })
    const { out, dialect } = this.#options
    return {
      index: place.content_index,
      transcript: '',
      recording: new Recording(),
      send: out.deltas({ type: `${dialect.names.audio}.delta`, ...place }),
      sendTranscript: out.deltas({ type: `${dialect.names.transcript}.delta`, ...place }),
    }
  }

  #openPart(part: object): { readonly content_index: number } {
    const place = { ...this.#place, content_index: this.#parts++ }
    this.#options.out.tell({ type: 'response.content_part.added', ...place, part })
    return place
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
