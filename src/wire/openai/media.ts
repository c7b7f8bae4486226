import type { ContentItem } from '../../protocol/content.ts'
import { invalid } from '../parse.ts'

type ImageItem = Extract<ContentItem, { type: 'image' }>
type AudioItem = Extract<ContentItem, { type: 'audio' }>
type FileItem = Extract<ContentItem, { type: 'file' }>

const DATA_URL = /^data:([^;,]*)((?:;[^;,]+)*?)(;base64)?,/
const BASE64 = /^[A-Za-z0-9+/\-_]*={0,2}$/
/** Characters of base64 that are checked at once: a regular expression over megabytes would block the event loop. */
const SLICE = 64 * 1024

/** An image given by URL. A `data:` URL becomes base64. */
export function imageItem(url: string, { detail, param }: { readonly detail?: string | undefined; readonly param: string }): ImageItem {
  const hint = detail === undefined ? {} : { detail }
  const data = dataUrl(url, param)
  if (data) return { type: 'image', image: data.base64, ...formatOf(data.mime), ...hint }
  if (!/^https?:\/\//.test(url)) throw invalid(`"${param}" must be an http(s) or a data URL`, param, 'invalid_image_url')
  return { type: 'image', image: { url }, ...hint }
}

export function audioItem({ data, format }: { readonly data: string; readonly format: string }, param: string): AudioItem {
  checkBase64(data, param)
  return { type: 'audio', audio: data, format }
}

export interface GivenFile {
  readonly file_data?: string | null | undefined
  readonly file_url?: string | null | undefined
  readonly file_id?: string | null | undefined
  readonly filename?: string | null | undefined
}

/** `file_data` is a data URL or bare base64. A `file_id` is refused, as there are no uploads here. */
export function fileItem({ file_data, file_url, file_id, filename }: GivenFile, param: string): FileItem {
  const name = filename ?? 'file'
  if (file_data != null) {
    const data = dataUrl(file_data, `${param}.file_data`)
    if (!data) checkBase64(file_data, `${param}.file_data`)
    return { type: 'file', file: data?.base64 ?? file_data, filename: name, mime_type: data?.mime || mimeOf(name) }
  }
  if (file_url != null) return { type: 'file', file: { url: file_url }, filename: name, mime_type: mimeOf(name) }
  if (file_id != null)
    throw invalid('Files cannot be uploaded here: send "file_data" instead of "file_id"', `${param}.file_id`, 'file_not_found')
  throw invalid(`"${param}" must have "file_data"`, param, 'missing_required_parameter')
}

function checkBase64(text: string, param: string): void {
  for (let at = 0; at < text.length; at += SLICE) {
    const piece = text.slice(at, at + SLICE)
    if (!BASE64.test(piece) || (at + SLICE < text.length && piece.endsWith('=')))
      throw invalid(`"${param}" is not base64`, param, 'invalid_base64')
  }
}

/** The source of a media item as a URL, for protocols that know only URLs. */
export function urlOf(source: string | { readonly url: string }, mime: string): string {
  if (typeof source !== 'string') return source.url
  return /^(https?|data):/.test(source) ? source : `data:${mime};base64,${source}`
}

function dataUrl(url: string, param: string): { mime: string; base64: string } | undefined {
  if (!url.startsWith('data:')) return undefined
  const [head = '', mime = '', , encoded] = DATA_URL.exec(url.slice(0, 1024)) ?? []
  if (head === '') throw invalid(`"${param}" is not a data URL`, param, 'invalid_base64')
  const text = url.slice(head.length)
  if (encoded === undefined) return { mime, base64: textToBase64(decodeURIComponent(text)) }
  checkBase64(text, param)
  return { mime, base64: text }
}

function textToBase64(text: string): string {
  return btoa(String.fromCodePoint(...new TextEncoder().encode(text)))
}

function formatOf(mime: string): { format?: string } {
  const [, kind] = mime.split('/')
  return kind === undefined || kind === '' ? {} : { format: kind }
}

const MIMES: Readonly<Record<string, string>> = {
  pdf: 'application/pdf',
  json: 'application/json',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  html: 'text/html',
}

function mimeOf(filename: string): string {
  return MIMES[filename.split('.').at(-1)?.toLowerCase() ?? ''] ?? 'application/octet-stream'
}
