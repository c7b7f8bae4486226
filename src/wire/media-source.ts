import type { MediaItem } from '../protocol/content.ts'
import { bareBase64, publicUrl, sniffedImage } from './media-parts.ts'
import { wav } from './wav.ts'

/** A media item's bytes, or a URL from which others can fetch them. */
export type MediaSource = { readonly mime: string; readonly data: string } | { readonly mime: string; readonly url: string }

const MIMES: Readonly<Record<string, string>> = {
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  png: 'image/png',
  gif: 'image/gif',
  webp: 'image/webp',
  wav: 'audio/wav',
  mp3: 'audio/mp3',
  opus: 'audio/ogg',
  mp4: 'video/mp4',
  webm: 'video/webm',
  mov: 'video/quicktime',
}
const USUAL = { image: 'image/png', audio: 'audio/wav', video: 'video/mp4' }

/**
 * A media item's bytes and their type, for APIs that want both. `undefined` if only this server could find the bytes, or if there are
 * none: what an agent says is not parsed, so an item may be malformed.
 */
export function mediaSource(item: MediaItem): MediaSource | undefined {
  const source = item.type === 'image' ? item.image : item.type === 'audio' ? item.audio : item.type === 'video' ? item.video : item.file
  const written = typeof source === 'string' ? source : (source as Partial<typeof source> | undefined)?.url
  if (typeof written !== 'string') return undefined
  const data = typeof source === 'string' || written.startsWith('data:') ? bareBase64(written) : undefined
  if (data === undefined) {
    const url = publicUrl(source)
    return url === undefined ? undefined : { url, mime: mimeOf(item, url) }
  }
  if (item.type === 'audio' && item.format === 'pcm16') return samples(data)
  return { data, mime: /^data:([^;,]+)/.exec(written.slice(0, 256))?.[1] ?? mimeOf(item, data) }
}

function samples(data: string): MediaSource | undefined {
  try {
    return { data: wav(data), mime: 'audio/wav' }
  } catch {
    return undefined
  }
}

function mimeOf(item: MediaItem, source: string): string {
  if (item.type === 'file') return item.mime_type
  const { type, format } = item
  if (format !== undefined) return format.includes('/') ? format : (MIMES[format] ?? `${type}/${format}`)
  const ending = /\.(\w{3,4})(?:[?#]|$)/.exec(source.slice(-256))?.[1]?.toLowerCase()
  return sniffedImage(source) ?? MIMES[ending ?? ''] ?? USUAL[type]
}
