import { dataUrlFact, isObject, type Json, objects, type Problem, string, unknownKey } from '../vendor.ts'
import { reasons } from './openai-errors.ts'

const KNOWN =
  'model messages stream stream_options tools tool_choice parallel_tool_calls response_format temperature top_p max_tokens max_completion_tokens stop seed n user metadata store service_tier reasoning_effort verbosity frequency_penalty presence_penalty logit_bias logprobs top_logprobs modalities audio prediction prompt_cache_key prompt_cache_retention safety_identifier web_search_options functions function_call'

/** What OpenAI answers 400 to. `lenient` servers do not mind fields that they do not know. */
export function checkChat(body: Json, { lenient }: { readonly lenient: boolean } = { lenient: false }): Problem | undefined {
  const extra = lenient ? undefined : unknownKey(body, KNOWN)
  if (extra) return bad(`Unrecognized request argument supplied: ${extra}`)
  if (typeof body.model !== 'string' || body.model === '') return bad('you must provide a model parameter')
  if (!Array.isArray(body.messages) || body.messages.length === 0) return bad("[] is too short - 'messages'", 'messages')
  if (body.stream_options != null && body.stream !== true) {
    return bad("The 'stream_options' parameter is only allowed when 'stream' is enabled.", 'stream_options')
  }
  return sampling(body) ?? toolDefinitions(body) ?? responseFormat(body) ?? contents(body.messages) ?? toolPairs(objects(body.messages))
}

const bad = (message: string, param?: string, code?: string): Problem => ({
  status: 400,
  message,
  ...(param && { param }),
  ...(code && { code }),
})

function sampling(body: Json): Problem | undefined {
  if (!reasons(string(body.model))) return undefined
  if (body.max_tokens != null) {
    const message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    return bad(message, 'max_tokens', 'unsupported_parameter')
  }
  for (const name of ['temperature', 'top_p', 'presence_penalty', 'frequency_penalty']) {
    if (body[name] != null && body[name] !== 1) {
      const message = `Unsupported value: '${name}' does not support ${String(body[name])} with this model. Only the default (1) value is supported.`
      return bad(message, name, 'unsupported_value')
    }
  }
  return undefined
}

function toolDefinitions(body: Json): Problem | undefined {
  if (body.tools == null)
    return body.tool_choice == null ? undefined : bad("'tool_choice' is only allowed when 'tools' are specified.", 'tool_choice')
  if (!Array.isArray(body.tools) || body.tools.length === 0) return bad("[] is too short - 'tools'", 'tools')
  for (const [at, tool] of objects(body.tools).entries()) {
    const { name, parameters } = isObject(tool.function) ? tool.function : {}
    if (tool.type !== 'function') return bad(`Invalid value: '${string(tool.type)}'.`, `tools[${at}].type`)
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(string(name))) return bad(`Invalid 'tools[${at}].function.name'`, `tools[${at}].function.name`)
    if (parameters !== undefined && (!isObject(parameters) || parameters.type !== 'object')) {
      const message = `Invalid schema for function '${string(name)}': schema must be a JSON Schema of 'type: "object"'`
      return bad(message, `tools[${at}].function.parameters`, 'invalid_function_parameters')
    }
  }
  return undefined
}

function responseFormat({ response_format: format }: Json): Problem | undefined {
  if (!isObject(format)) return format == null ? undefined : bad('Invalid type for response_format', 'response_format')
  if (format.type !== 'json_schema') return undefined
  const { name, schema, strict } = isObject(format.json_schema) ? format.json_schema : {}
  if (typeof name !== 'string')
    return bad("Missing required parameter: 'response_format.json_schema.name'.", 'response_format.json_schema.name')
  return strict === true ? strictSchema(schema, 'response_format') : undefined
}

/** Structured outputs, supported schemas: every object closed, and every property required. */
export function strictSchema(schema: unknown, at: string): Problem | undefined {
  if (!isObject(schema)) return bad(`Invalid schema for ${at}`, at, 'invalid_json_schema')
  if (schema.type === 'object') {
    if (schema.additionalProperties !== false) {
      return bad(`Invalid schema for ${at}: 'additionalProperties' is required to be supplied and to be false.`, at, 'invalid_json_schema')
    }
    const properties = isObject(schema.properties) ? schema.properties : {}
    const required = Array.isArray(schema.required) ? schema.required : []
    const missing = Object.keys(properties).find((key) => !required.includes(key))
    if (missing)
      return bad(`Invalid schema for ${at}: 'required' must hold every key in properties. Missing '${missing}'.`, at, 'invalid_json_schema')
    for (const property of Object.values(properties)) {
      const problem = strictSchema(property, at)
      if (problem) return problem
    }
  }
  return isObject(schema.items) ? strictSchema(schema.items, at) : undefined
}

const PARTS: Readonly<Record<string, readonly string[]>> = {
  system: ['text'],
  developer: ['text'],
  user: ['text', 'image_url', 'input_audio', 'file'],
  assistant: ['text', 'refusal'],
  tool: ['text'],
}

function contents(messages: readonly unknown[]): Problem | undefined {
  for (const [at, message] of messages.entries()) {
    const { role, content, tool_calls: calls } = isObject(message) ? message : {}
    const allowed = PARTS[string(role)]
    if (!allowed)
      return bad(`Invalid value: '${String(role)}'. Supported values are: ${Object.keys(PARTS).join(', ')}.`, `messages[${at}].role`)
    if (content == null && !(role === 'assistant' && objects(calls).length > 0)) {
      return bad(`Invalid value for 'content': expected a string, got null.`, `messages[${at}].content`)
    }
    for (const [index, part] of objects(content).entries()) {
      const where = `messages[${at}].content[${index}]`
      if (!allowed.includes(string(part.type)))
        return bad(`Invalid value: '${string(part.type)}' of role '${string(role)}'.`, `${where}.type`)
      const image = isObject(part.image_url) ? part.image_url : undefined
      if (part.type === 'image_url' && !dataUrlFact(image?.url))
        return bad('Invalid image URL or base64 image data.', where, 'invalid_image_url')
    }
  }
  return undefined
}

function toolPairs(messages: readonly Json[]): Problem | undefined {
  let open = new Set<string>()
  for (const [at, { role, tool_call_id: id, tool_calls: calls }] of messages.entries()) {
    if (role === 'tool') {
      if (!open.delete(string(id))) {
        return bad(
          "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
          `messages[${at}].role`,
        )
      }
      continue
    }
    if (open.size > 0) return unanswered(open)
    for (const [index, call] of objects(calls).entries()) {
      const { name, arguments: input } = isObject(call.function) ? call.function : {}
      if (typeof name !== 'string' || typeof input !== 'string' || call.type !== 'function') {
        return bad('Invalid tool call', `messages[${at}].tool_calls[${index}]`)
      }
    }
    open = new Set(objects(calls).map((call) => string(call.id)))
  }
  return open.size > 0 ? unanswered(open) : undefined
}

function unanswered(ids: ReadonlySet<string>): Problem {
  const message = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
  return bad(`${message} The following tool_call_ids did not have response messages: ${[...ids].join(', ')}`, 'messages')
}
