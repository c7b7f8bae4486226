import type { CallToolResult } from '@modelcontextprotocol/client'
import type { ToolOutput } from '../../core/ports/skill.ts'
import type { ContentItem } from '../../protocol/content.ts'

/** The result of an MCP tool. An error is thrown, so that the model reads it. */
export function toOutput({ content, structuredContent, isError }: CallToolResult): ToolOutput {
  const texts: string[] = []
  const items: ContentItem[] = []
  for (const part of content) {
    switch (part.type) {
      case 'text':
        texts.push(part.text)
        break
      case 'image':
        items.push({ type: 'image', image: part.data, format: subtype(part.mimeType) })
        break
      case 'audio':
        items.push({ type: 'audio', audio: part.data, format: subtype(part.mimeType) })
        break
      case 'resource_link':
        texts.push(`${part.title ?? part.name}: ${part.uri}`)
        break
      case 'resource':
        if ('text' in part.resource) texts.push(part.resource.text)
        else items.push(file(part.resource))
    }
  }
  if (texts.length === 0 && structuredContent !== undefined) texts.push(JSON.stringify(structuredContent))
  const text = texts.join('\n')
  if (isError) throw new Error(text === '' ? 'The tool failed' : text)
  // `data` marks the object as a tool's output, even if it is undefined.
  return { text, ...(items.length > 0 && { content_items: items }), data: structuredContent }
}

function file({ uri, mimeType, blob }: { uri: string; mimeType?: string | undefined; blob: string }): ContentItem {
  const filename = uri.slice(uri.lastIndexOf('/') + 1) || 'file'
  return { type: 'file', file: blob, filename, mime_type: mimeType ?? 'application/octet-stream' }
}

/** `png` of `image/png`. */
function subtype(mime: string): string {
  return mime.slice(mime.indexOf('/') + 1)
}
