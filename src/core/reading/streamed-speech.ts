import { joinBase64 } from '../../protocol/base64.ts'
import type { ContentItem } from '../../protocol/content.ts'
import { textOf } from '../../protocol/message.ts'
import type { Spoken } from '../engine/unsaid.ts'

/** Most characters of sound that are kept. Of longer speech only the words remain. */
const KEPT = 16 * 1024 * 1024

/** Collects speech that an agent streams in pieces. A complete item may follow, but need not. */
export class StreamedSpeech {
  readonly #id = crypto.randomUUID()
  #pieces: string[] = []
  #format: string | undefined
  /** Infinity when the pieces cannot be joined, because their formats differ. */
  #length = 0
  /** Words that no item holds yet. */
  #words = ''
  /** Words since the last `complete`. */
  #utterance = ''
  #heard = { sound: false, words: '' }

  /** Characters of sound that are kept now. */
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

  /** Ends an utterance. `words` is all of it, and may hold more than was streamed. */
  complete(words: string | undefined): void {
    this.#heard.words = words ?? this.#heard.words
    if (words?.startsWith(this.#utterance)) this.#words += words.slice(this.#utterance.length)
    this.#utterance = ''
  }

  /** A complete item has come: it holds the words, and the sound too if it is audio. */
  known({ type }: ContentItem): void {
    this.#words = this.#utterance = ''
    if (type !== 'audio') return
    this.#pieces = []
    this.#length = 0
  }

  get heard(): Spoken {
    return this.#heard
  }

  /** The items that the speech adds to an output with these other items. */
  items(others: readonly ContentItem[]): ContentItem[] {
    // Some agents send the words they speak as text, too.
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
      // Not base64, so it cannot be joined.
      return ''
    }
  }
}
