import { fromBase64 } from '../protocol/base64.ts'
import type { ContentItem, MediaItem } from '../protocol/content.ts'
import { wav } from './wav.ts'

type Of<T extends ContentItem['type']> = Extract<ContentItem, { type: T }>

/** Types of files that are sent to models as text, which every model can read. */
const TEXTUAL = /^text\/|[/+](json|xml|yaml|x-yaml|toml|javascript|typescript|x-sh|sql)$/
/** Bytes of a file that is sent as text. A larger one is sent as a file. */
const INLINE = 256 * 1024

/** The first characters of a picture in base64. */
const MAGIC = { '/9j/': 'image/jpeg', iVBOR: 'image/png', R0lGOD: 'image/gif', UklGR: 'image/webp' }

/** Names media that a model cannot be shown, so that it can say so. Speech with a transcript becomes its words. */
export function note(item: MediaItem): string {
  if (item.type === 'audio' && item.transcript !== undefined && item.transcript !== '') return item.transcript
  const name = item.type === 'file' ? item.filename : (item.description ?? (item.type === 'image' ? item.alt_text : undefined))
  const handle = item.content_id === undefined ? '' : `, content_id ${item.content_id}`
  return `[${item.type}${name === undefined ? '' : ` "${name}"`}${handle}: it cannot be shown here]`
}

/** A URL that others can fetch. A relative or `blob:` URL means nothing to a provider. */
export function publicUrl(source: string | { readonly url: string }): string | undefined {
  const url = typeof source === 'string' ? source.slice(0, 8) : source.url
  return /^(https?|data):/.test(url) ? (typeof source === 'string' ? source : source.url) : undefined
}

/** Base64 without a URL around it. */
export function bareBase64(source: string | { readonly url: string }): string | undefined {
  if (typeof source !== 'string') return undefined
  if (!source.startsWith('data:')) return /^https?:/.test(source.slice(0, 8)) ? undefined : source
  const comma = source.indexOf(',')
  return source.slice(0, comma).endsWith(';base64') ? source.slice(comma + 1) : undefined
}

/** As a URL, also if it is base64. */
export function imageUrl({ image, format }: Of<'image'>): string | undefined {
  const url = publicUrl(image)
  if (url !== undefined) return url
  if (typeof image !== 'string') return undefined
  const mime = format === undefined ? (sniffedImage(image) ?? 'image/png') : `image/${format}`
  return `data:${mime};base64,${image}`
}

/** OpenAI takes WAV and MP3; bare samples get a WAV header. */
export function inputAudio({ audio, format = 'pcm16' }: Of<'audio'>): { data: string; format: 'wav' | 'mp3' } | undefined {
  const data = bareBase64(audio)
  if (data === undefined) return undefined
  if (format === 'wav' || format === 'mp3') return { data, format }
  if (format !== 'pcm16') return undefined
  try {
    return { data: wav(data), format: 'wav' }
  } catch {
    return undefined
  }
}

/** The text of a file, under its name. */
export function fileText({ file, filename, mime_type }: Of<'file'>): string | undefined {
  const data = TEXTUAL.test(mime_type) ? bareBase64(file) : undefined
  if (data === undefined || data.length > (INLINE * 4) / 3) return undefined
  try {
    return `${filename}:\n${new TextDecoder('utf-8', { fatal: true }).decode(fromBase64(data))}`
  } catch {
    return undefined
  }
}

export function fileDataUrl({ file, mime_type }: Of<'file'>): string | undefined {
  const data = bareBase64(file)
  return data === undefined ? undefined : `data:${mime_type};base64,${data}`
}

/** The type of a picture by its first bytes: a client need not name it, and APIs refuse a wrong one. */
export function sniffedImage(base64: string): string | undefined {
  return Object.entries(MAGIC).find(([magic]) => base64.startsWith(magic))?.[1]
}
