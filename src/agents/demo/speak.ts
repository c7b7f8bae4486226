import type { Turn } from '../../core/ports/agent.ts'
import { base64, bytesIn } from '../../protocol/base64.ts'
import type { ContentItem } from '../../protocol/content.ts'
import { CHUNK_BYTES, SAMPLE_RATE, tone } from './media.ts'
import { spent, type Drafts } from './say.ts'

interface Speech {
  readonly bytes: Uint8Array
  readonly transcript: string
  readonly description: string
}

/** Audio and its transcript, a tenth of a second at a time; then the whole item. */
export async function* speak({ bytes, transcript, description }: Speech, turn: Turn): Drafts {
  const words = transcript.match(/\s*\S+/g) ?? []
  const duration_ms = Math.round((bytes.length / 2 / SAMPLE_RATE) * 1000)
  for (let at = 0, chunk = 0; at < bytes.length; at += CHUNK_BYTES, chunk++) {
    yield { type: 'audio.delta', audio: base64(bytes.subarray(at, at + CHUNK_BYTES)), format: 'pcm16' }
    const word = words[chunk]
    if (word !== undefined) yield { type: 'transcript.delta', transcript: word }
  }
  yield { type: 'audio.done', duration_ms }
  yield { type: 'transcript.done', transcript }
  yield {
    type: 'response.delta',
    delta: { type: 'audio', audio: base64(bytes), format: 'pcm16', duration_ms, transcript, ...handle(description) },
  }
  yield spent(turn, words.length)
}

/** Answers audio with audio: repeats samples, and plays a tone for other formats. */
export function answerAudio({ audio, format }: Extract<ContentItem, { type: 'audio' }>, turn: Turn): Drafts {
  const heard = typeof audio === 'string' && (format === undefined || format === 'pcm16') ? bytesIn(audio) : undefined
  if (!heard) return speak({ bytes: tone(1), transcript: 'I heard you, but I only repeat pcm16.', description: 'A tone' }, turn)
  const seconds = (heard.length / 2 / SAMPLE_RATE).toFixed(1)
  return speak({ bytes: heard, transcript: `You said ${seconds} s of audio.`, description: 'What you said' }, turn)
}

export function handle(description: string): { content_id: string; description: string } {
  return { content_id: crypto.randomUUID(), description }
}
