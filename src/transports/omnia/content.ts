import type { ContentItem, MediaItem } from '../../protocol/content.ts'
import type { EventOf } from '../../protocol/events.ts'
import type { Slot } from '../../protocol/json.ts'
import { mediaSource } from '../../wire/media-source.ts'
import { invalid, type Media, type Message, type Part } from './schema.ts'
import { SOUND } from './sound.ts'

type Unsent<E> = E extends unknown ? Omit<E, 'event_id'> : never
export type Input = Unsent<EventOf<'input.text' | 'input.audio' | 'input.image' | 'input.video' | 'input.file'>>

/** The base64 of what a storage reference stands for. Rejects when it is not this session's. */
export type Resolve = (storageRef: string) => Promise<{ readonly base64: string; readonly filename: string }>

/** Characters of base64 that are looked at in one go; whole groups of four. */
const SLICE = 64 * 1024

/** What a message says, part by part. Nothing is sent before all of it is known to be good. */
export async function inputsOf(message: Pick<Message, 'content' | 'parts'>, resolve: Resolve, most: number): Promise<Input[]> {
  const { content, parts } = message
  // Where both are there the parts win (Omnia WebSocket protocol, Message).
  if (parts == null || parts.length === 0) {
    if (content == null || content === '') throw invalid('A message must have "content" or "parts"')
    return [{ type: 'input.text', text: content }]
  }
  const inputs: Input[] = []
  let left = most
  for (const [index, part] of parts.entries()) {
    const where = `parts.${index}`
    if (part.type === 'text') {
      if (part.text == null) throw invalid(`"${where}.text" is missing`)
      inputs.push({ type: 'input.text', text: part.text })
      continue
    }
    if (!part.media) throw invalid(`"${where}.media" is missing`)
    const source = await sourceOf(part.media, `${where}.media`, resolve)
    left -= typeof source.media === 'string' ? source.media.length : 0
    if (left < 0) throw invalid(`A message may carry ${most} characters of base64, with what it refers to`)
    inputs.push(mediaInput(part.type, part.media, source))
  }
  return inputs
}

interface Source {
  readonly media: string | { readonly url: string }
  readonly filename?: string
}

async function sourceOf({ data, url, storage_ref: ref }: Media, where: string, resolve: Resolve): Promise<Source> {
  if ([data, url, ref].filter((source) => source != null).length !== 1) {
    throw invalid(`"${where}" must have one of "data", "url" and "storage_ref"`)
  }
  if (data != null) {
    if (!isBase64(data)) throw invalid(`"${where}.data" is not base64`)
    return { media: data }
  }
  if (url != null) {
    if (!/^https?:\/\//i.test(url)) throw invalid(`"${where}.url" must be an http(s) URL`)
    return { media: { url } }
  }
  const { base64, filename } = await resolve(ref ?? '')
  return { media: base64, filename }
}

function mediaInput(type: Exclude<Part['type'], 'text'>, media: Media, { media: source, filename }: Source): Input {
  const format = formatOf(media)
  switch (type) {
    case 'image':
      return { type: 'input.image', image: source, format, ...(media.detail != null && { detail: media.detail }) }
    case 'audio':
      return { type: 'input.audio', audio: source, format, is_final: true }
    case 'video':
      return { type: 'input.video', video: source, format }
    case 'file':
      return { type: 'input.file', file: source, filename: media.filename ?? filename ?? 'file', mime_type: media.mime_type }
  }
}

function formatOf({ mime_type: mime, sample_rate: rate, channels }: Media): string {
  const [, kind = mime] = /^[^/]*\/([^;]+)/.exec(mime) ?? []
  if (kind !== 'pcm') return kind
  // Only what agents know by that name: else they would hear it at the wrong pace.
  return (rate ?? SOUND.sample_rate) === SOUND.sample_rate && (channels ?? 1) === 1 ? 'pcm16' : mime
}

function isBase64(text: string): boolean {
  if (text.length % 4 !== 0) return false
  try {
    for (let at = 0; at < text.length; at += SLICE) {
      const slice = text.slice(at, at + SLICE)
      // `atob` takes white space and a padded end; here that may only be the last.
      if (/\s/.test(slice) || (slice.endsWith('=') && at + SLICE < text.length)) return false
      atob(slice)
    }
    return true
  } catch {
    return false
  }
}

/** The words of an answer: its text, and what was spoken. */
export function wordsOf(output: readonly ContentItem[]): string {
  let words = ''
  for (const item of output) {
    if (item.type === 'text') words += item.text
    else if (item.type === 'audio') words += item.transcript ?? ''
  }
  return words
}

/** An answer in parts; undefined where it is words alone. What was streamed is not sent again. */
export function partsOf(output: readonly ContentItem[], streamed: boolean): Slot[] | undefined {
  const media = output.filter((item): item is MediaItem => isShown(item, streamed)).flatMap(mediaPart)
  if (media.length === 0) return undefined
  const text = wordsOf(output)
  return [...(text === '' ? [] : [{ type: 'text', text }]), ...media]
}

function isShown({ type }: ContentItem, streamed: boolean): boolean {
  return type === 'image' || type === 'video' || type === 'file' || (type === 'audio' && !streamed)
}

function mediaPart(item: MediaItem): Slot[] {
  const source = mediaSource(item)
  if (!source) return []
  const { mime: mime_type, ...where } = source
  const { filename, size_bytes } = item.type === 'file' ? item : {}
  const duration_ms = item.type === 'audio' || item.type === 'video' ? item.duration_ms : undefined
  return [{ type: item.type, media: { ...where, mime_type, filename, size_bytes, duration_ms } }]
}
