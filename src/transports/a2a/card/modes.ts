import type { Capabilities } from '../../../protocol/capabilities.ts'

const USUAL: Readonly<Record<string, readonly string[]>> = {
  text: ['text/plain'],
  image: ['image/png', 'image/jpeg'],
  audio: ['audio/wav', 'audio/mpeg'],
  video: ['video/mp4'],
  file: ['application/json', 'application/octet-stream'],
}

/** What an agent takes and gives, as media types. Never empty: A2A 1.0 §5.7. */
export function modesOf(capabilities: Capabilities): { readonly input: readonly string[]; readonly output: readonly string[] } {
  const { modalities, image, audio, file } = capabilities
  const told: Readonly<Record<string, readonly string[] | undefined>> = {
    'image:in': typed('image', image?.formats),
    'image:out': typed('image', image?.formats),
    'audio:in': typed('audio', audio?.input_formats),
    'audio:out': typed('audio', audio?.output_formats),
    'file:in': file?.supported_mime_types,
  }
  const modes = (way: 'in' | 'out'): readonly string[] => {
    const all = modalities.flatMap((modality) => told[`${modality}:${way}`] ?? USUAL[modality] ?? [])
    return all.length > 0 ? [...new Set(all)] : ['text/plain']
  }
  return { input: modes('in'), output: modes('out') }
}

/** `png` and `image/png` are both said. */
function typed(modality: string, formats: readonly string[] | undefined): readonly string[] | undefined {
  if (!formats || formats.length === 0) return undefined
  return formats.map((format) => (format.includes('/') ? format : `${modality}/${format}`))
}
