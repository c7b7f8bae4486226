import { isMedia, type ContentItem, type MediaItem } from '../../protocol/content.ts'
import type { EventOf, Unsent } from '../../protocol/events.ts'
import type { Slot } from '../../protocol/json.ts'
import { mediaSource } from '../../wire/media-source.ts'
import { invalid } from './errors.ts'
import type { MediaPart, Message } from './schema.ts'
import { isHeard } from './sound.ts'

type Measured = Exclude<MediaItem, { type: 'file' }>
type Input = Unsent<EventOf<'input.text' | 'input.audio' | 'input.image' | 'input.video' | 'input.file'>>

export interface Stored {
  readonly base64: string
  readonly filename: string
  readonly size_bytes: number
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

/** A payment in advance goes with the first of the inputs. One without a text gets an empty one for it. */
export function paidWith(payment_token: string | undefined, inputs: readonly Input[]): readonly Input[] {
  if (payment_token === undefined) return inputs
  const at = inputs.findIndex(({ type }) => type === 'input.text')
  if (at < 0) return [{ type: 'input.text', text: '', payment_token }, ...inputs]
  return inputs.map((input, index) => (index === at ? { ...input, payment_token } : input))
}

function mediaInput({ type, media }: MediaPart, source: string | { url: string }, stored: Stored | undefined): Input {
  const format = formatOf(media)
  const measured = measuresOf(media, stored)
  switch (type) {
    case 'image':
      return { type: 'input.image', image: source, format, ...measured, ...(media.detail != null && { detail: media.detail }) }
    case 'audio':
      return { type: 'input.audio', audio: source, format, is_final: true, ...measured }
    case 'video':
      return { type: 'input.video', video: source, format, ...measured }
    case 'file': {
      const { filename = 'file', size_bytes } = measured
      return { type: 'input.file', file: source, filename, mime_type: media.mime_type, ...(size_bytes !== undefined && { size_bytes }) }
    }
  }
}

/** What is known of the media; an upload knows its own name and size. */
function measuresOf(media: MediaPart['media'], stored: Stored | undefined) {
  const { width, height, duration_ms, sample_rate, channels } = media
  const filename = media.filename ?? stored?.filename
  const size_bytes = stored?.size_bytes ?? media.size_bytes
  return known({ filename, size_bytes, width, height, duration_ms, sample_rate, channels })
}

/** The fields that have a value. */
function known<T extends object>(fields: T): { [Name in keyof T]?: NonNullable<T[Name]> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null)) as never
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

/** Media that comes in pieces, and is kept to be played again: video, and sound that was streamed. */
export function isReplayed(item: ContentItem, hasSpoken: boolean): item is MediaItem {
  return item.type === 'video' || (item.type === 'audio' && hasSpoken)
}

export interface PartsOptions {
  readonly text: string
  readonly hasSpoken: boolean
  /** The URLs of media that was kept. */
  readonly replays?: ReadonlyMap<MediaItem, string> | undefined
}

/** An answer in parts; undefined if it has only words. Sound that was streamed is not sent again, only where it is found. */
export function partsOf(output: readonly ContentItem[], { text, hasSpoken, replays }: PartsOptions): Slot[] | undefined {
  const media = output.filter(isMedia).flatMap((item) => {
    const url = replays?.get(item)
    return url === undefined && item.type === 'audio' && hasSpoken ? [] : mediaPart(item, url)
  })
  if (media.length === 0) return undefined
  return [...(text === '' ? [] : [{ type: 'text', text }]), ...media]
}

function mediaPart(item: MediaItem, url: string | undefined): Slot[] {
  const source = mediaSource(item)
  if (!source) return []
  const { mime: mime_type, ...where } = source
  const { filename, size_bytes } = item
  const { width, height, duration_ms, sample_rate, channels } = item.type === 'file' ? ({} as Partial<Measured>) : item
  const measured = known({ filename, size_bytes, width, height, duration_ms, sample_rate, channels })
  return [{ type: item.type, media: { ...(url === undefined ? where : { url }), mime_type, ...measured } }]
}
