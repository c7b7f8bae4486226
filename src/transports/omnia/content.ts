import { isMedia, type ContentItem, type MediaItem } from '../../protocol/content.ts'
import type { EventOf, Unsent } from '../../protocol/events.ts'
import type { Slot } from '../../protocol/json.ts'
import { mediaSource } from '../../wire/media-source.ts'
import { invalid } from './errors.ts'
import type { MediaPart, Message } from './schema.ts'
import { isHeard } from './sound.ts'

type Input = Unsent<EventOf<'input.text' | 'input.audio' | 'input.image' | 'input.video' | 'input.file'>>

export interface Stored {
  readonly base64: string
  readonly filename: string
}

export interface InputsOptions {
  /** The upload of a storage reference. Rejects if it is not this session's. */
  readonly resolve: (storageRef: string) => Promise<Stored>
  /** Characters of base64 in the whole message. */
  readonly most: number
}

/** The parts of a message as inputs. Throws before anything is sent if one of them is wrong. */
export async function inputsOf({ content, parts }: Message, { resolve, most }: InputsOptions): Promise<Input[]> {
  // Parts win over content (Omnia WebSocket protocol, Message).
  if (parts == null || parts.length === 0) {
    if (content == null || content === '') throw invalid('A message must have "content" or "parts"')
    return [{ type: 'input.text', text: content }]
  }
  const inputs: Input[] = []
  let left = most
  for (const part of parts) {
    if (part.type === 'text') {
      inputs.push({ type: 'input.text', text: part.text })
      continue
    }
    const { data, url, storage_ref: ref } = part.media
    const stored = ref == null ? undefined : await resolve(ref)
    const base64 = stored?.base64 ?? data
    left -= base64?.length ?? 0
    if (left < 0) throw invalid(`A message may carry ${most} characters of base64, with what it refers to`)
    inputs.push(mediaInput(part, base64 ?? { url: url ?? '' }, stored))
  }
  return inputs
}

function mediaInput({ type, media }: MediaPart, source: string | { url: string }, stored: Stored | undefined): Input {
  const format = formatOf(media)
  switch (type) {
    case 'image':
      return { type: 'input.image', image: source, format, ...(media.detail != null && { detail: media.detail }) }
    case 'audio':
      return { type: 'input.audio', audio: source, format, is_final: true }
    case 'video':
      return { type: 'input.video', video: source, format }
    case 'file':
      return { type: 'input.file', file: source, filename: media.filename ?? stored?.filename ?? 'file', mime_type: media.mime_type }
  }
}

function formatOf(media: MediaPart['media']): string {
  const { mime_type: mime } = media
  const [, kind = mime] = /^[^/]*\/([^;\s]+)/.exec(mime) ?? []
  if (kind !== 'pcm') return kind
  // Agents take pcm16 to have our sample rate: other sound would play at the wrong speed.
  return isHeard(media) ? 'pcm16' : mime
}

/** The words of an answer: its text, and transcripts of speech. `heard`: the transcript so far, for agents that give no whole one. */
export function wordsOf(output: readonly ContentItem[], heard = ''): string {
  let words = ''
  let isWhole = false
  for (const item of output) {
    if (item.type === 'text') words += item.text
    if (item.type !== 'audio' || item.transcript === undefined) continue
    words += item.transcript
    isWhole = true
  }
  return isWhole ? words : words + heard
}

/** An answer in parts; undefined if it has only words. Sound that was streamed is not sent again. */
export function partsOf(output: readonly ContentItem[], text: string, streamed: boolean): Slot[] | undefined {
  const media = output.filter(isMedia).flatMap((item) => (item.type === 'audio' && streamed ? [] : mediaPart(item)))
  if (media.length === 0) return undefined
  return [...(text === '' ? [] : [{ type: 'text', text }]), ...media]
}

function mediaPart(item: MediaItem): Slot[] {
  const source = mediaSource(item)
  if (!source) return []
  const { mime: mime_type, ...where } = source
  const { filename, size_bytes } = item.type === 'file' ? item : {}
  const duration_ms = item.type === 'audio' || item.type === 'video' ? item.duration_ms : undefined
  return [{ type: item.type, media: { ...where, mime_type, filename, size_bytes, duration_ms } }]
}
