/** A part of a message or an artifact: the form of 1.0, and how earlier generations write it. */
import { isRecord } from '../../protocol/json.ts'

type Fields = Readonly<Record<string, unknown>>

/** Exactly one of `text`, `raw` (base64), `url` and `data` is set. */
export interface Part {
  readonly text?: string
  readonly raw?: string
  readonly url?: string
  readonly data?: unknown
  readonly filename?: string
  readonly mediaType?: string
  readonly metadata?: Fields
}

/** Marks data that is wrapped as `{ value }` because earlier generations have no shape for it. The official SDK does the same. */
export const WRAPPED = 'data_part_compat'
/** The member of `metadata` for fields that earlier generations do not have. */
export const SLOT = 'uamp'

/** A part before 1.0. `name`: the member that tells the forms apart, `kind` since 0.2, `type` before. */
export function partIn(name: 'kind' | 'type'): (part: Part) => object {
  return (part) => {
    const { text, data, metadata } = part
    if (text !== undefined) return { [name]: 'text', text, ...slotted(part) }
    if (data !== undefined) return { [name]: 'data', ...wrapped(part) }
    return { [name]: 'file', file: fileIn(part, { bytes: 'bytes', uri: 'uri' }), ...(metadata && { metadata }) }
  }
}

/** The same in ProtoJSON of `a2a.v1`, which REST of 0.3 speaks. It has other names than JSON-RPC. */
export function protoPart(part: Part): object {
  const { text, data, metadata } = part
  if (text !== undefined) return { text, ...slotted(part) }
  if (data !== undefined) {
    const { data: inner, ...marked } = wrapped(part)
    return { data: { data: inner }, ...marked }
  }
  return { file: fileIn(part, { bytes: 'fileWithBytes', uri: 'fileWithUri' }), ...(metadata && { metadata }) }
}

function fileIn({ raw, url, mediaType, filename }: Part, name: { readonly bytes: string; readonly uri: string }): object {
  return {
    ...(raw !== undefined ? { [name.bytes]: raw } : { [name.uri]: url }),
    ...(mediaType !== undefined && { mimeType: mediaType }),
    ...(filename !== undefined && { name: filename }),
  }
}

/** Before 1.0 texts and data have neither a name nor a media type: both go into our slot of the metadata. */
function slotted({ filename, mediaType, metadata }: Part): { readonly metadata?: Fields } {
  if (filename === undefined && mediaType === undefined) return metadata ? { metadata } : {}
  const had = metadata?.[SLOT]
  const slot = { ...(isRecord(had) && had), ...(filename !== undefined && { filename }), ...(mediaType !== undefined && { mediaType }) }
  return { metadata: { ...metadata, [SLOT]: slot } }
}

/** Before 1.0 data is always an object. Other values are wrapped, and marked as the official SDK marks them. */
function wrapped(part: Part): { readonly data: Fields; readonly metadata?: Fields } {
  const { data } = part
  const { metadata } = slotted(part)
  if (isRecord(data)) return { data, ...(metadata && { metadata }) }
  return { data: { value: data }, metadata: { ...metadata, [WRAPPED]: true } }
}

/** ProtoJSON also has base64 for URLs, and leaves out the padding. Not everybody reads that. */
export function standardBase64(text: string): string {
  const standard = /[-_]/.test(text) ? text.replaceAll('-', '+').replaceAll('_', '/') : text
  return standard.length % 4 === 0 ? standard : standard.replace(/=+$/, '').padEnd(Math.ceil(standard.length / 4) * 4, '=')
}
