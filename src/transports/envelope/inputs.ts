import { openBody } from '../../envelope/body.ts'
import { envelopeError } from '../../envelope/codes.ts'
import type { Body } from '../../envelope/schema.ts'
import { base64 } from '../../protocol/base64.ts'
import type { EventOf, Unsent } from '../../protocol/events.ts'
import type { EnvelopeSettings } from './settings.ts'

/** The types of bodies that are taken, as the manifest lists them. */
export const BODY_TYPES = ['text/plain', 'text/markdown', 'application/json', 'image/*', 'audio/*', 'video/*', 'application/pdf'] as const

type Input = Unsent<EventOf<'input.text' | 'input.audio' | 'input.image' | 'input.video' | 'input.file'>>

/** What a message says, as an input of a session. */
export async function inputOf(body: Body, settings: Pick<EnvelopeSettings, 'maxBodyKb' | 'brotli'>): Promise<Input> {
  const type = body.type.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const [kind, format = ''] = type.split('/', 2)
  const isText = kind === 'text' || type === 'application/json' || type.endsWith('+json')
  const isMedia = kind === 'image' || kind === 'audio' || kind === 'video' || type === 'application/pdf'
  if (!isText && !isMedia) throw envelopeError('4.15', `Bodies of the type "${body.type.slice(0, 64)}" are not taken here`, 'body_type')
  const bytes = await openBody(body, { maxBytes: settings.maxBodyKb * 1024, brotli: settings.brotli })
  if (isText) return { type: 'input.text', text: textIn(bytes) }
  const data = base64(bytes)
  if (kind === 'image') return { type: 'input.image', image: data, format }
  if (kind === 'audio') return { type: 'input.audio', audio: data, format }
  if (kind === 'video') return { type: 'input.video', video: data, format }
  return { type: 'input.file', file: data, filename: 'body.pdf', mime_type: type, size_bytes: bytes.length }
}

/** The text of a body. */
export async function textOf(body: Body, settings: Pick<EnvelopeSettings, 'maxBodyKb' | 'brotli'>): Promise<string> {
  return textIn(await openBody(body, { maxBytes: settings.maxBodyKb * 1024, brotli: settings.brotli }))
}

function textIn(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw envelopeError('4.00', 'The content of the body is not UTF-8', 'encoding')
  }
}
