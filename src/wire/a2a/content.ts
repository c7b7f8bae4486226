/** Content items as parts of A2A, and back. */
import { base64, fromBase64 } from '../../protocol/base64.ts'
import type { MediaItem } from '../../protocol/content.ts'
import { parseJson } from '../../protocol/json.ts'
import { mediaSource } from '../media-source.ts'
import type { Part } from './parts.ts'

export const JSON_TYPE = 'application/json'

/** The name of a file that data becomes, as there is no content item for data. */
export const DATA_FILE = 'data.json'

/** A part that is no text. `name`: of a file that has none of its own. */
export function mediaItemOf({ raw, url, data, filename, mediaType = '' }: Part, name?: string): MediaItem {
  const source = raw ?? (url === undefined ? undefined : { url })
  if (source === undefined) {
    const file = base64(new TextEncoder().encode(JSON.stringify(data ?? null)))
    return { type: 'file', file, filename: filename ?? name ?? DATA_FILE, mime_type: JSON_TYPE }
  }
  const [kind, format] = mediaType.split(';')[0]?.split('/') ?? []
  const how = format === undefined || format === '' ? {} : { format }
  switch (kind) {
    case 'image':
      return { type: 'image', image: source, ...how }
    case 'audio':
      return { type: 'audio', audio: source, ...how }
    case 'video':
      return { type: 'video', video: source, ...how }
    default:
      return { type: 'file', file: source, filename: filename ?? name ?? 'file', mime_type: mediaType || 'application/octet-stream' }
  }
}

/** Undefined: only this server can find what it shows. */
export function partOf(item: MediaItem): Part | undefined {
  const source = mediaSource(item)
  if (!source) return undefined
  const about = { mediaType: source.mime, ...(item.type === 'file' && { filename: item.filename }) }
  return 'data' in source ? { raw: source.data, ...about } : { url: source.url, ...about }
}

/** The JSON in a file. Undefined: it has none. */
export function dataIn(file: string): unknown {
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true }).decode(fromBase64(file)))
  } catch {
    return undefined
  }
}
