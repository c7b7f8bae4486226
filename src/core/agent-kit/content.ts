import { base64 } from '../../protocol/base64.ts'
import type { ContentItem } from '../../protocol/content.ts'
import type { Draft, EventOf } from '../../protocol/events.ts'

/** Bytes, base64 text, or an address (`https:` or `data:`). */
export type Source = Uint8Array | URL | string

type Options<T extends ContentItem['type']> = Partial<Omit<Extract<ContentItem, { type: T }>, 'type' | T>>

/** A picture: `yield image(await readFile('cat.png'), { format: 'png', alt_text: 'A cat' })`. */
export function image(source: Source, options: Options<'image'> = {}): Draft {
  return { type: 'response.delta', delta: { type: 'image', image: mediaOf(source), ...options } }
}

/** A recording as a whole. For speech that is made while it is heard, yield `audio.delta` events. */
export function audio(source: Source, options: Options<'audio'> = {}): Draft {
  // Sound without a handle is a piece of a stream.
  const content_id = crypto.randomUUID()
  return { type: 'response.delta', delta: { type: 'audio', audio: mediaOf(source), content_id, ...options } }
}

export function video(source: Source, options: Options<'video'> = {}): Draft {
  return { type: 'response.delta', delta: { type: 'video', video: mediaOf(source), ...options } }
}

/** A file: `yield file(bytes, 'report.pdf', { mime_type: 'application/pdf' })`. */
export function file(source: Source, filename: string, options: Omit<Options<'file'>, 'filename'> = {}): Draft {
  const delta = { type: 'file' as const, file: mediaOf(source), filename, mime_type: 'application/octet-stream', ...options }
  return { type: 'response.delta', delta }
}

/** A piece of the agent's reasoning, which clients show beside the answer. */
export function thinking(content: string): Draft {
  return { type: 'thinking', content, is_delta: true }
}

type ProgressOptions = Partial<Pick<EventOf<'progress'>, 'percent' | 'stage' | 'step' | 'total_steps'>>

/** What the agent does at the moment: `yield progress('Reading the files', { percent: 40 })`. It is not kept. */
export function progress(message: string, options: ProgressOptions = {}): Draft {
  return { type: 'progress', target: 'response', message, ...options }
}

function mediaOf(source: Source): string | { url: string } {
  if (source instanceof Uint8Array) return base64(source)
  const address = String(source)
  return /^(https?|data):/i.test(address) ? { url: address } : address
}
