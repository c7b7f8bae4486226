import { type Call, imageFact, isObject, type Json, objects, type Problem, string, unknownKey } from '../vendor.ts'

const KNOWN =
  'model messages max_tokens stream system tools tool_choice thinking output_config metadata stop_sequences temperature top_p top_k service_tier cache_control container context_management mcp_servers inference_geo diagnostics speed user_profile_id workspace_id'
const VERSIONS = ['2023-06-01', '2026-10-21']
const IMAGES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp']

const bad = (message: string): Problem => ({ status: 400, message })

/** What Anthropic answers 400 to. `issued` are the signatures that it gave out. */
export function checkMessages({ body, headers }: Call, issued: ReadonlySet<string>): Problem | undefined {
  const version = String(headers['anthropic-version'] ?? '')
  if (!VERSIONS.includes(version))
    return bad(version ? `anthropic-version: ${version} is not valid` : 'anthropic-version: header is required')
  const extra = unknownKey(body, KNOWN)
  if (extra) return bad(`${extra}: Extra inputs are not permitted`)
  if (typeof body.model !== 'string') return bad('model: Field required')
  if (typeof body.max_tokens !== 'number') return bad('max_tokens: Field required')
  if (!Array.isArray(body.messages)) return bad('messages: Field required')
  if (body.messages.length === 0) return bad('messages: at least one message is required')
  const messages = objects(body.messages)
  return settings(body, version) ?? definitions(body) ?? contents(messages) ?? toolPairs(messages) ?? thinkingKept(messages, issued)
}

function settings(body: Json, version: string): Problem | undefined {
  const thinking = isObject(body.thinking) ? body.thinking : {}
  for (const name of ['temperature', 'top_p', 'top_k']) {
    if (body[name] === undefined) continue
    if (version === '2026-10-21') return bad(`${name}: sampling parameters are not supported in this version`)
    if (thinking.type === 'enabled' && body[name] !== 1) return bad('`temperature` may only be set to 1 when thinking is enabled.')
  }
  if (thinking.type === 'enabled') {
    const budget = Number(thinking.budget_tokens)
    if (!(budget >= 1024)) return bad('thinking.enabled.budget_tokens: Input should be greater than or equal to 1024')
    if (budget >= Number(body.max_tokens)) return bad('`max_tokens` must be greater than `thinking.budget_tokens`.')
  } else if (thinking.type !== undefined && !['adaptive', 'between_tools', 'disabled'].includes(string(thinking.type))) {
    return bad(`thinking.type: Input tag '${string(thinking.type)}' is not known`)
  }
  const choice = isObject(body.tool_choice) ? string(body.tool_choice.type) : 'auto'
  if (!['auto', 'any', 'tool', 'none'].includes(choice)) return bad(`tool_choice: Input tag '${choice}' is not known`)
  if (['any', 'tool'].includes(choice) && thinking.type !== undefined && thinking.type !== 'disabled') {
    return bad('Thinking may not be enabled when tool_choice forces tool use.')
  }
  const format = isObject(body.output_config) && isObject(body.output_config.format) ? body.output_config.format : undefined
  if (format && (format.type !== 'json_schema' || !isObject(format.schema)))
    return bad('output_config.format: a json_schema with a schema is required')
  return format ? closedObjects(format.schema) : undefined
}

function closedObjects(schema: unknown): Problem | undefined {
  if (!isObject(schema)) return undefined
  if (schema.type === 'object' && schema.additionalProperties !== false) {
    return bad("output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false")
  }
  const inner = [...Object.values(isObject(schema.properties) ? schema.properties : {}), schema.items]
  return inner.map(closedObjects).find((problem) => problem)
}

function definitions(body: Json): Problem | undefined {
  for (const [at, tool] of objects(body.tools).entries()) {
    if (tool.type !== undefined && tool.type !== 'custom') continue
    if (!/^[a-zA-Z0-9_-]{1,128}$/.test(string(tool.name)))
      return bad(`tools.${at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`)
    if (!isObject(tool.input_schema)) return bad(`tools.${at}.custom.input_schema: Field required`)
    if (tool.input_schema.type !== 'object') return bad(`tools.${at}.custom.input_schema.type: Input should be 'object'`)
    const extra = unknownKey(
      tool,
      'name description input_schema type cache_control strict eager_input_streaming defer_loading input_examples',
    )
    if (extra) return bad(`tools.${at}.custom.${extra}: Extra inputs are not permitted`)
  }
  const markers = JSON.stringify(body).split('"cache_control":{').length - 1
  return markers > 4 ? bad(`A maximum of 4 blocks with cache_control may be provided. Found ${markers}.`) : undefined
}

const BLOCKS: Readonly<Record<string, readonly string[]>> = {
  user: ['text', 'image', 'document', 'tool_result', 'search_result', 'container_upload'],
  // In the middle of a conversation; what stands first belongs into `system`.
  system: ['text'],
  assistant: ['text', 'thinking', 'redacted_thinking', 'tool_use', 'server_tool_use', 'web_search_tool_result'],
}

function contents(messages: readonly Json[]): Problem | undefined {
  for (const [at, { role, content }] of messages.entries()) {
    const allowed = BLOCKS[string(role)]
    if (!allowed) return bad(`messages.${at}.role: Input should be 'user', 'assistant' or 'system'`)
    if (content === '' || (Array.isArray(content) && content.length === 0)) {
      return bad(`messages.${at}: all messages must have non-empty content except for the optional final assistant message`)
    }
    if (typeof content !== 'string' && !Array.isArray(content)) return bad(`messages.${at}.content: Field required`)
    for (const [index, block] of objects(content).entries()) {
      const where = `messages.${at}.content.${index}`
      if (!allowed.includes(string(block.type)))
        return bad(`${where}: Input tag '${string(block.type)}' is not allowed for role '${string(role)}'`)
      if (block.type === 'text' && block.text === '') return bad('messages: text content blocks must be non-empty')
      if (block.type === 'image') {
        const problem = image(block.source, where)
        if (problem) return problem
      }
    }
  }
  if (messages[0]?.role !== 'user') return bad('messages: first message must use the "user" role')
  const last = messages.at(-1)
  return last?.role === 'assistant' && /\s$/.test(string(last.content))
    ? bad('messages: final assistant content cannot end with trailing whitespace')
    : undefined
}

function image(source: unknown, where: string): Problem | undefined {
  if (!isObject(source)) return bad(`${where}.image.source: Field required`)
  if (source.type === 'url' || source.type === 'file') return undefined
  if (!IMAGES.includes(string(source.media_type)))
    return bad(`${where}.image.source.base64.media_type: Input should be ${IMAGES.join(', ')}`)
  return imageFact(source.media_type, source.data) ? undefined : bad(`${where}.image.source.base64.data: invalid base64 data`)
}

const ofType = (message: Json | undefined, type: string): Json[] => objects(message?.content).filter((block) => block.type === type)

function toolPairs(messages: readonly Json[]): Problem | undefined {
  for (const [at, message] of messages.entries()) {
    const results = ofType(message, 'tool_result')
    const before = new Set(ofType(messages[at - 1], 'tool_use').map(({ id }) => id))
    const stray = results.find(({ tool_use_id: id }) => !before.has(id))
    if (stray) {
      return bad(
        `messages.${at}.content: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${string(stray.tool_use_id)}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
      )
    }
    const answered = new Set(ofType(messages[at + 1], 'tool_result').map(({ tool_use_id: id }) => id))
    const open = ofType(message, 'tool_use').filter(({ id }) => !answered.has(id))
    if (open.length > 0) {
      return bad(
        `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.map(({ id }) => string(id)).join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
      )
    }
    const blocks = objects(message.content)
    if (results.length > 0 && blocks.slice(0, results.length).some(({ type }) => type !== 'tool_result')) {
      return bad(`messages.${at}: \`tool_result\` blocks must come first in the content`)
    }
    if (ofType(message, 'tool_use').some(({ input }) => !isObject(input)))
      return bad(`messages.${at}: tool_use.input: Input should be a valid dictionary`)
  }
  return undefined
}

/** Anthropic, extended thinking with tool use: what was thought before a call comes back before it, unchanged. */
function thinkingKept(messages: readonly Json[], issued: ReadonlySet<string>): Problem | undefined {
  for (const [at, message] of messages.entries()) {
    for (const block of [...ofType(message, 'thinking'), ...ofType(message, 'redacted_thinking')]) {
      const proof = block.type === 'thinking' ? string(block.signature) : string(block.data)
      if (!issued.has(proof)) return bad(`messages.${at}.content.0: Invalid \`signature\` in \`thinking\` block`)
    }
    const [first] = objects(message.content)
    const thought = ofType(message, 'tool_use').some(({ id }) => string(id).includes('think'))
    if (thought && first?.type !== 'thinking' && first?.type !== 'redacted_thinking') {
      return bad(
        `messages.${at}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${string(first?.type)}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks).`,
      )
    }
    if (thought && ofType(message, 'redacted_thinking').length === 0)
      return bad(`messages.${at}: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified`)
  }
  return undefined
}
