import { base64, fromBase64 } from '../../protocol/base64.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'

/** What is asked for. */
const FORMAT = 'pcm16'
/** Characters of base64 that are gathered for the whole item. Beyond them the answer is given up. */
const LIMIT = 64 * 1024 * 1024

/** An answer that is spoken: piece by piece as it comes, and whole at its end. */
export class Speech {
  readonly #pieces: string[] = []
  #size = 0
  #transcript = ''

  hear({ data, transcript }: Readonly<Record<string, unknown>>): Draft[] {
    const drafts: Draft[] = []
    if (typeof data === 'string' && data !== '') {
      if ((this.#size += data.length) > LIMIT) throw new UampError('too_large', `The spoken answer is longer than ${LIMIT} characters`)
      this.#pieces.push(data)
      drafts.push({ type: 'audio.delta', audio: data, format: FORMAT })
    }
    if (typeof transcript === 'string' && transcript !== '') {
      this.#transcript += transcript
      drafts.push({ type: 'transcript.delta', transcript })
    }
    return drafts
  }

  end(): Draft[] {
    if (this.#pieces.length === 0) return []
    const transcript = this.#transcript
    return [
      { type: 'audio.done' },
      { type: 'transcript.done', transcript },
      {
        type: 'response.delta',
        delta: { type: 'audio', audio: this.#whole(), format: FORMAT, transcript, content_id: crypto.randomUUID() },
      },
    ]
  }

  /** Base64 texts can be put together as they are, unless one before the last is padded. */
  #whole(): string {
    if (this.#pieces.slice(0, -1).every((piece) => piece.length % 4 === 0 && !piece.endsWith('='))) return this.#pieces.join('')
    try {
      const parts = this.#pieces.map(fromBase64)
      const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
      let at = 0
      for (const part of parts) {
        bytes.set(part, at)
        at += part.length
      }
      return base64(bytes)
    } catch (cause) {
      throw new UampError('provider_error', 'The spoken answer is not base64', { cause })
    }
  }
}
