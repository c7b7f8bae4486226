import { joinBase64 } from '../../protocol/base64.ts'
import type { ContentItem } from '../../protocol/content.ts'
import { textOf } from '../../protocol/message.ts'
import type { Spoken } from '../engine/unsaid.ts'

/** Characters of sound that are kept. Of a longer speech only the words are. */
const KEPT = 16 * 1024 * 1024

/** Speech that comes in pieces. The whole of it may follow, but need not. */
export class StreamedSpeech {
  readonly #id = crypto.randomUUID()
  #pieces: string[] = []
  #format: string | undefined
  /** Infinite where the pieces make no whole. */
  #length = 0
  /** The words of which no item is known, and those that are not complete. */
  #words = ''
  #utterance = ''
  #heard = { sound: false, words: '' }

  /** How many characters of sound it holds. */
  get size(): number {
    return this.#pieces.length === 0 ? 0 : this.#length
  }

  sound(piece: string, format: string | undefined): void {
    this.#heard.sound = true
    const fits = this.#pieces.length === 0 || format === this.#format
    this.#format = format
    this.#length += fits ? piece.length : Infinity
    if (this.#length > KEPT) this.#pieces = []
    else this.#pieces.push(piece)
  }

  say(words: string): void {
    this.#heard.words += words
    this.#words += words
    this.#utterance += words
  }

  /** The words are complete. Some may not have come one by one. */
  complete(words: string | undefined): void {
    this.#heard.words = words ?? this.#heard.words
    if (words?.startsWith(this.#utterance)) this.#words += words.slice(this.#utterance.length)
    this.#utterance = ''
  }

  /** An item has the words, and the sound too if it is audio. */
  known({ type }: ContentItem): void {
    this.#words = this.#utterance = ''
    if (type !== 'audio') return
    this.#pieces = []
    this.#length = 0
  }

  /** Everything that was streamed, in an output that has these others. */
  heardBeside(others: readonly ContentItem[]): Spoken {
    return { ...this.#heard, items: this.items(others).length }
  }

  /** What belongs into an output that has these others. */
  items(others: readonly ContentItem[]): ContentItem[] {
    // Some agents write what they speak.
    const words = this.#words === textOf(others) ? '' : this.#words
    const audio = this.#joined()
    if (audio === '') return words === '' ? [] : [{ type: 'text', text: words }]
    const format = this.#format !== undefined && { format: this.#format }
    return [{ type: 'audio', audio, ...format, ...(words !== '' && { transcript: words }), content_id: this.#id }]
  }

  #joined(): string {
    try {
      return joinBase64(this.#pieces)
    } catch {
      // Not base64: nothing that could be kept.
      return ''
    }
  }
}
