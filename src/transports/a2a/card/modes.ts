/** The media types of an agent: what its card says that it takes and gives, and whether it takes what a client sends. */
import type { Capabilities } from '../../../protocol/capabilities.ts'
import { isRecord } from '../../../protocol/json.ts'
import { JSON_TYPE } from '../../../wire/a2a/content.ts'
import { a2aError } from '../errors.ts'
import type { Part } from '../model.ts'

/** What agents take and give that do not tell the types of a modality. */
const USUAL: Readonly<Record<string, readonly string[]>> = {
  text: ['text/plain'],
  image: ['image/png', 'image/jpeg'],
  audio: ['audio/wav', 'audio/mpeg'],
  video: ['video/mp4'],
  file: [JSON_TYPE, 'application/octet-stream'],
}

/** The media types that an agent takes and gives. Never empty: A2A 1.0 §5.7. */
export function modesOf(capabilities: Capabilities): { readonly input: readonly string[]; readonly output: readonly string[] } {
  const modes = (told: Told): readonly string[] => {
    const all = capabilities.modalities.flatMap((modality) => told[modality] ?? USUAL[modality] ?? [])
    return all.length > 0 ? [...new Set(all)] : ['text/plain']
  }
  const { image, audio } = capabilities
  return {
    input: modes(taken(capabilities)),
    output: modes({ image: typed('image', image?.formats), audio: typed('audio', audio?.output_formats) }),
  }
}

/** By modality, the types that an agent tells. */
type Told = Readonly<Record<string, readonly string[] | undefined>>

function taken({ image, audio, file }: Capabilities): Told {
  return {
    image: typed('image', image?.formats),
    audio: typed('audio', audio?.input_formats),
    file: file?.supported_mime_types,
  }
}

/** Agents say both `png` and `image/png`. */
function typed(modality: string, formats: readonly string[] | undefined): readonly string[] | undefined {
  if (!formats || formats.length === 0) return undefined
  return formats.map((format) => (format.includes('/') ? format : `${modality}/${format}`))
}

/** Throws `CONTENT_TYPE_NOT_SUPPORTED` for the first part whose media type the card of the agent does not announce. */
export function checkParts(capabilities: Capabilities, parts: readonly Part[]): void {
  const field = parts.findIndex((part) => !takes(capabilities, part))
  if (field < 0) return
  const type = typeOf(parts[field] as Part) ?? ''
  const supported = modesOf(capabilities).input.join(', ')
  const message = `This agent does not take ${type.slice(0, 128)}: it takes ${supported}`
  throw a2aError('CONTENT_TYPE_NOT_SUPPORTED', message, { field: `message.parts[${field}]`, supported })
}

/** Every agent takes text, and a part that does not say what it is may be anything. A modality without types has all of them. */
function takes(capabilities: Capabilities, part: Part): boolean {
  const type = typeOf(part)
  if (type === undefined) return true
  const [family = ''] = type.split('/')
  const modality = family === 'image' || family === 'audio' || family === 'video' ? family : 'file'
  const isFree = capabilities.modalities.includes(modality) && taken(capabilities)[modality] === undefined
  return isFree || modesOf(capabilities).input.some((mode) => covers(mode.toLowerCase(), type))
}

/** Without parameters. Undefined: text, unknown, or a payment, which is for this server. */
function typeOf({ text, data, mediaType }: Part): string | undefined {
  if (text !== undefined || (isRecord(data) && data['type'] === 'payment.submit')) return undefined
  return (data === undefined ? mediaType : JSON_TYPE)?.split(';')[0]?.trim().toLowerCase() || undefined
}

/** `text/*` and `*` stand for more than one type. */
function covers(mode: string, type: string): boolean {
  return mode === type || mode === '*' || mode === '*/*' || (mode.endsWith('/*') && type.startsWith(mode.slice(0, -1)))
}
