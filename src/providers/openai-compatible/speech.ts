import { base64, bytesIn } from '../../protocol/base64.ts'
import { joinedBytes } from '../../protocol/bytes.ts'
import type { Draft } from '../../protocol/events.ts'

/** Bytes of an answer that are kept for the whole item at its end. A longer answer is only streamed. */
const KEPT = 32 * 1024 * 1024
/** Characters of the transcript that are kept. The rest is only streamed. */
const KEPT_TEXT = 1024 * 1024
/** OpenAI streams 16-bit samples, 24 kHz, mono. */
const FORMAT = 'pcm16'
const BYTES_PER_MS = 48

/** Streams audio, and gives the whole of it at the end. */
export class Speech {
  #chunks: Uint8Array[] = []
  #size = 0
  #transcript = ''
  #spoke = false

  add({ data, transcript }: { readonly data?: unknown; readonly transcript?: unknown }, out: Draft[]): void {
    if (typeof transcript === 'string' && transcript !== '') {
      if (this.#transcript.length < KEPT_TEXT) this.#transcript += transcript
      out.push({ type: 'transcript.delta', transcript })
    }
    if (typeof data !== 'string' || data === '') return
    this.#spoke = true
    this.#keep(data)
    out.push({ type: 'audio.delta', audio: data, format: FORMAT })
  }

  end(newId: () => string, out: Draft[]): void {
    const duration_ms = Math.round(this.#size / BYTES_PER_MS)
    if (this.#spoke) out.push({ type: 'audio.done', duration_ms })
    if (this.#transcript !== '') out.push({ type: 'transcript.done', transcript: this.#transcript })
    if (!this.#spoke || this.#size > KEPT) return
    const audio = base64(joinedBytes(this.#chunks))
    const transcript = this.#transcript === '' ? {} : { transcript: this.#transcript }
    out.push({ type: 'response.delta', delta: { type: 'audio', audio, format: FORMAT, duration_ms, content_id: newId(), ...transcript } })
  }

  #keep(data: string): void {
    const bytes = bytesIn(data)
    if (!bytes) return
    this.#size += bytes.length
    if (this.#size > KEPT) this.#chunks = []
    else this.#chunks.push(bytes)
  }
}
