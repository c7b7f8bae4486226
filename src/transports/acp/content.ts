import type { InputEvent } from '../../core/ports/session.ts'
import type { Unsent } from '../../protocol/events.ts'
import type { ContentBlock } from '../../wire/acp/blocks.ts'

/** Characters of a title. */
const TITLE = 80

/** What a client said, as inputs of one message: a text with its mentions in their places, what they hold below it, then media. */
export function toInputs(blocks: readonly ContentBlock[]): Unsent<InputEvent>[] {
  let text = ''
  let context = ''
  const media: Unsent<InputEvent>[] = []
  for (const block of blocks) {
    switch (block.type) {
      case 'text':
        text += block.text
        break
      case 'resource_link':
        text += mention(block.uri, block.name)
        break
      case 'image':
        media.push({ type: 'input.image', image: block.data, format: subtype(block.mimeType) })
        break
      case 'audio':
        media.push({ type: 'input.audio', audio: block.data, format: subtype(block.mimeType), is_final: true })
        break
      case 'resource': {
        const { resource } = block
        const { uri, mimeType } = resource
        const filename = uri.slice(uri.lastIndexOf('/') + 1) || uri
        text += mention(uri, filename)
        if ('text' in resource) context += `\n<context ref="${uri}">\n${resource.text}\n</context>`
        else media.push({ type: 'input.file', file: resource.blob, filename, mime_type: mimeType ?? 'application/octet-stream' })
      }
    }
  }
  const said = text + context
  return said === '' && media.length > 0 ? media : [{ type: 'input.text', text: said }, ...media]
}

/** What a session is called that begins with it. */
export function titleOf(blocks: readonly ContentBlock[]): string | undefined {
  const text = blocks.map((block) => (block.type === 'text' ? block.text : '')).join('')
  return text.trim().split('\n')[0]?.slice(0, TITLE)
}

function mention(uri: string, name: string): string {
  return `[@${name}](${uri})`
}

function subtype(mime: string): string {
  return /\/([^ ;]+)/.exec(mime)?.[1] ?? ''
}
