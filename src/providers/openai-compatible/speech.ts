import { base64, fromBase64 } from '../../protocol/base64.ts'
import type { Draft } from '../../protocol/events.ts'

/** Bytes of one answer that are kept for its whole. A longer one is streamed, and then not kept. */
const KEPT = 32 * 1024 * 1024
/** Characters of its transcript that are kept; the rest is only streamed. */
const KEPT_TEXT = 1024 * 1024
/** OpenAI streams samples of 16 bits, 24 kHz, one channel. */
const FORMAT = 'pcm16'
const BYTES_PER_MS = 48

/** Audio as it is spoken, and the whole of it in the end. */
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
    const audio = base64(joined(this.#chunks, this.#size))
    const transcript = this.#transcript === '' ? {} : { transcript: this.#transcript }
    out.push({ type: 'response.delta', delta: { type: 'audio', audio, format: FORMAT, duration_ms, content_id: newId(), ...transcript } })
  }

  #keep(data: string): void {
    try {
      const bytes = fromBase64(data)
      this.#size += bytes.length
      if (this.#size > KEPT) this.#chunks = []
      else this.#chunks.push(bytes)
    } catch {
      // Not base64: nothing that could be kept.
    }
  }
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const whole = new Uint8Array(size)
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.length
  }
  return whole
}
