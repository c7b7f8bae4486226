import { fromBase64 } from '../protocol/base64.ts'
import type { ContentItem, MediaItem } from '../protocol/content.ts'
import { wav } from './wav.ts'

type Of<T extends ContentItem['type']> = Extract<ContentItem, { type: T }>

/** Files that are text are told as text: every model can read it. */
const TEXTUAL = /^text\/|[/+](json|xml|yaml|x-yaml|toml|javascript|typescript|x-sh|sql)$/
/** Bytes of a file that are told as text. A larger one goes as a file. */
const INLINE = 256 * 1024

/** What a model cannot be shown is named, so that it can say so; speech of which the words are known is told in words. */
export function note(item: MediaItem): string {
  if (item.type === 'audio' && item.transcript !== undefined && item.transcript !== '') return item.transcript
  const name = item.type === 'file' ? item.filename : (item.description ?? (item.type === 'image' ? item.alt_text : undefined))
  const handle = item.content_id === undefined ? '' : `, content_id ${item.content_id}`
  return `[${item.type}${name === undefined ? '' : ` "${name}"`}${handle}: it cannot be shown here]`
}

/** A URL that somebody else can fetch. One that is relative, or base64 under a `blob:`, means nothing to a provider. */
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

/** As a URL, also when it is base64. */
export function imageUrl({ image, format }: Of<'image'>): string | undefined {
  const url = publicUrl(image)
  if (url !== undefined) return url
  return typeof image === 'string' ? `data:image/${format ?? sniffed(image)};base64,${image}` : undefined
}

/** OpenAI hears WAV and MP3; bare samples get a WAV header. */
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

/** A file's own text, under its name. */
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

/** By the first bytes; a wrong type is refused by the APIs, and a client need not have said any. */
function sniffed(base64: string): string {
  if (base64.startsWith('/9j/')) return 'jpeg'
  if (base64.startsWith('R0lG')) return 'gif'
  return base64.startsWith('UklG') ? 'webp' : 'png'
}
