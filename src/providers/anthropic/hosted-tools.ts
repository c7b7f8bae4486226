import { hostedToolsIn, unsupportedTool } from '../../core/agent-kit/hosted-tools.ts'
import { fieldsOf, isRecord, type Slot } from '../../protocol/json.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { present } from '../../wire/fields.ts'

/** Tools that Anthropic runs, by the names of both vendors. A date may follow. */
export const HOSTED = ['web_search', 'web_search_preview', 'web_fetch', 'code_execution', 'code_interpreter']

/** Messages API, server tools: the versions that are asked for where the client names none. Every model that has the tool takes them. */
const VERSIONS = { web_search: 'web_search_20250305', web_fetch: 'web_fetch_20250910', code_execution: 'code_execution_20250825' } as const

interface HostedTool {
  readonly type: string
  readonly name: string
}

/** The hosted tools of a turn in Anthropic's words. */
export function hostedTools(config: SessionConfig): HostedTool[] {
  const hosted = hostedToolsIn(config).map(toHosted)
  const taken = hosted.find(({ name }) => config.tools?.some((tool) => tool.function.name === name))
  // The API knows both by their names alone.
  if (taken) throw unsupportedTool(`"${taken.name}" cannot be a function and a tool of Anthropic's in one request: rename the function`)
  return hosted
}

function toHosted({ type, ...given }: Readonly<Slot>): HostedTool {
  const [, own, dated] = /^(web_search|web_fetch|code_execution)(_\d{8})?$/.exec(String(type)) ?? []
  if (own !== undefined && dated !== undefined) return { ...given, type: String(type), name: own }
  if (own === 'web_fetch' || own === 'code_execution') return { ...given, type: VERSIONS[own], name: own }
  return String(type).startsWith('code_interpreter') ? interpreter(given) : search(given)
}

/** Both vendors describe places in the same way. How much of a page is read cannot be said here. */
function search({ filters, user_location, max_uses, allowed_domains, blocked_domains }: Readonly<Slot>): HostedTool {
  const options = present({
    max_uses,
    allowed_domains: fieldsOf(filters)['allowed_domains'] ?? allowed_domains,
    blocked_domains: fieldsOf(filters)['blocked_domains'] ?? blocked_domains,
    user_location: isRecord(user_location) ? { type: 'approximate', ...user_location } : undefined,
  })
  return { type: VERSIONS.web_search, name: 'web_search', ...options }
}

function interpreter({ container }: Readonly<Slot>): HostedTool {
  const files = fieldsOf(container)['file_ids']
  if (typeof container === 'string' || (Array.isArray(files) && files.length > 0))
    throw unsupportedTool('Anthropic has no files and containers of OpenAI: use "code_interpreter" with container { "type": "auto" }')
  return { type: VERSIONS.code_execution, name: 'code_execution' }
}

/** The tool that the client wants to be called, if Anthropic runs it. */
export function chosenHosted(config: SessionConfig, hosted: readonly HostedTool[]): Slot | undefined {
  const { tool_choice } = fieldsOf(config.extensions?.['openai'])
  if (hosted.length === 0) return undefined
  if (tool_choice === 'required') return { type: 'any' }
  const { type } = fieldsOf(tool_choice)
  const wanted = hostedToolsIn(config).find((tool) => tool['type'] === type)
  return wanted && { type: 'tool', name: toHosted(wanted).name }
}
