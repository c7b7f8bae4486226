import type { Capabilities } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import { fieldsOf, recordsIn } from '../../protocol/json.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'

/** Tools that OpenAI runs itself, and that need nothing of the client. A date may follow the name. */
export const HOSTED_TOOLS = ['web_search', 'web_search_preview', 'file_search', 'code_interpreter', 'image_generation']

/** The hosted tools that an agent has: `capabilities.extensions.openai.hosted_tools`. */
export function withHostedTools(capabilities: Capabilities, hosted_tools: readonly string[]): Capabilities {
  return { ...capabilities, extensions: { ...capabilities.extensions, openai: { hosted_tools } } }
}

/** The hosted tools of a turn, as the client wrote them. */
export function hostedToolsIn({ extensions }: SessionConfig): Readonly<Record<string, unknown>>[] {
  const { tools, tool_choice } = fieldsOf(extensions?.['openai'])
  return tool_choice === 'none' ? [] : recordsIn(tools).filter(({ type }) => type !== 'function')
}

export function hasHostedTool(capabilities: Capabilities | undefined, type: string): boolean {
  const { hosted_tools } = fieldsOf(capabilities?.extensions?.['openai'])
  return Array.isArray(hosted_tools) && hosted_tools.some((known) => type === known || type.startsWith(`${String(known)}_2`))
}

/** A tool that the provider has, but not as the client asks for it. */
export function unsupportedTool(message: string): UampError {
  return new UampError('invalid_request', message, { details: { param: 'tools', code: 'unsupported_value' } })
}

/** Refuses tools that the agent lacks: without them it would answer as if it had used them. */
export function checkHostedTools(
  tools: readonly { readonly type: string }[] | null | undefined,
  { name, capabilities }: { readonly name: string; readonly capabilities: Capabilities | undefined },
): void {
  for (const [index, { type }] of (tools ?? []).entries()) {
    if (type === 'function' || hasHostedTool(capabilities, type)) continue
    const message = `The agent "${name}" has no tool of the type "${type}". Offer functions, or ask an agent whose model has it`
    throw new UampError('invalid_request', message, { details: { param: `tools[${index}].type`, code: 'unsupported_value' } })
  }
}
