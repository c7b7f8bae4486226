import { hostedToolsIn, unsupportedTool } from '../../core/agent-kit/hosted-tools.ts'
import { fieldsOf, type Slot } from '../../protocol/json.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'

/** Tools that Google runs, by the names of both vendors. A date may follow. */
export const HOSTED = ['web_search', 'web_search_preview', 'google_search', 'url_context', 'code_execution', 'code_interpreter']

/** The hosted tools of a turn in Google's words. What Gemini cannot do is refused: it would answer as if it had. */
export function hostedTools(config: SessionConfig): Slot[] {
  const asked = hostedToolsIn(config)
  if (asked.length === 0) return []
  if (config.tools && config.tools.length > 0)
    throw unsupportedTool('Gemini does not take functions and tools of its own in one request: offer either')
  const { tool_choice } = fieldsOf(config.extensions?.['openai'])
  if (tool_choice != null && tool_choice !== 'auto')
    throw unsupportedTool('Gemini decides itself whether it uses a tool of its own: "tool_choice" must be "auto"')
  // One object for each kind: a kind that is named twice is there once.
  return [...new Map(asked.map(toHosted)).values()]
}

function toHosted({ type, filters, container }: Readonly<Slot>): [kind: string, tool: Slot] {
  const name = String(type)
  if (name === 'url_context') return [name, { urlContext: {} }]
  if (name.startsWith('code_')) {
    const files = fieldsOf(container)['file_ids']
    if (typeof container === 'string' || (Array.isArray(files) && files.length > 0))
      throw unsupportedTool('Google has no files and containers of OpenAI: use "code_interpreter" with container { "type": "auto" }')
    return ['code', { codeExecution: {} }]
  }
  if (Object.values(fieldsOf(filters)).some((list) => Array.isArray(list) && list.length > 0))
    throw unsupportedTool(`Google searches the whole web: "${name}" takes no filters there`)
  return ['search', { googleSearch: {} }]
}
