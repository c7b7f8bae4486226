import { dataUrlFact, isObject, type Json, objects, type Problem, string, unknownKey } from '../vendor.ts'
import { strictSchema } from './openai-chat-check.ts'
import { reasons } from './openai-errors.ts'

const KNOWN =
  'model input instructions stream stream_options tools tool_choice parallel_tool_calls text temperature top_p max_output_tokens max_tool_calls reasoning include store metadata previous_response_id conversation service_tier truncation user safety_identifier prompt_cache_key prompt_cache_retention prompt background top_logprobs context_management moderation'

/** `input` as items: a bare text is one message of the user. */
export function inputItems(body: Json): Json[] {
  return typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : objects(body.input)
}

const bad = (message: string, param?: string, code?: string): Problem => ({
  status: 400,
  message,
  ...(param && { param }),
  ...(code && { code }),
})

/** What OpenAI answers 400 to. `issued` are the encrypted thoughts that it gave out. */
export function checkResponses(body: Json, issued: ReadonlySet<string>): Problem | undefined {
  const extra = unknownKey(body, KNOWN)
  if (extra) return bad(`Unknown parameter: '${extra}'.`, extra, 'unknown_parameter')
  if (string(body.model) === '') return bad("Missing required parameter: 'model'.", 'model', 'missing_required_parameter')
  if (typeof body.input !== 'string' && !Array.isArray(body.input)) return bad("Missing required parameter: 'input'.", 'input')
  const items = inputItems(body)
  return settings(body) ?? definitions(body) ?? contents(items) ?? toolPairs(items, body) ?? thoughts(items, issued)
}

function settings(body: Json): Problem | undefined {
  const sampling = ['temperature', 'top_p'].find((name) => body[name] != null)
  if (sampling && reasons(string(body.model))) {
    return bad(`Unsupported parameter: '${sampling}' is not supported with this model.`, sampling, 'unsupported_parameter')
  }
  const format = isObject(body.text) && isObject(body.text.format) ? body.text.format : {}
  if (format.type !== 'json_schema') return undefined
  if (typeof format.name !== 'string') return bad("Missing required parameter: 'text.format.name'.", 'text.format.name')
  return format.strict === true ? strictSchema(format.schema, 'text.format.schema') : undefined
}

function definitions({ tools }: Json): Problem | undefined {
  for (const [at, { type, name, parameters, strict }] of objects(tools).entries()) {
    if (type !== 'function') continue
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(string(name))) return bad(`Invalid 'tools[${at}].name'`, `tools[${at}].name`)
    if (parameters != null && (!isObject(parameters) || parameters.type !== 'object')) {
      return bad(`Invalid schema for function '${string(name)}'`, `tools[${at}].parameters`, 'invalid_function_parameters')
    }
    // Here, unlike in Chat Completions, tools are strict unless it is said that they are not.
    const problem = strict !== false && parameters != null ? strictSchema(parameters, `function '${string(name)}'`) : undefined
    if (problem) return problem
  }
  return undefined
}

const PARTS: Readonly<Record<string, readonly string[]>> = {
  user: ['input_text', 'input_image', 'input_file', 'input_audio'],
  system: ['input_text'],
  developer: ['input_text'],
  assistant: ['output_text', 'refusal'],
}

function contents(items: readonly Json[]): Problem | undefined {
  for (const [at, item] of items.entries()) {
    const type = string(item.type ?? 'message')
    if (type !== 'message') {
      if (['function_call', 'function_call_output', 'reasoning', 'item_reference', 'compaction'].includes(type)) continue
      return bad(`Invalid value: '${type}'.`, `input[${at}]`, 'invalid_value')
    }
    const allowed = PARTS[string(item.role)]
    if (!allowed) return bad(`Invalid value: '${string(item.role)}'.`, `input[${at}].role`, 'invalid_value')
    for (const [index, part] of objects(item.content).entries()) {
      const where = `input[${at}].content[${index}]`
      if (!allowed.includes(string(part.type))) {
        return bad(`Invalid value: '${string(part.type)}'. Supported values are: ${allowed.join(', ')}.`, where, 'invalid_value')
      }
      if (part.type === 'input_image' && part.file_id == null && !dataUrlFact(part.image_url)) {
        return bad('The image data you provided does not represent a valid image.', where, 'invalid_base64')
      }
    }
  }
  return undefined
}

function toolPairs(items: readonly Json[], body: Json): Problem | undefined {
  const calls = new Set(items.filter(({ type }) => type === 'function_call').map(({ call_id: id }) => id))
  const outputs = new Set(items.filter(({ type }) => type === 'function_call_output').map(({ call_id: id }) => id))
  for (const id of calls) if (!outputs.has(id)) return bad(`No tool output found for function call ${String(id)}.`, 'input')
  if (body.previous_response_id != null || body.conversation != null) return undefined
  for (const id of outputs)
    if (!calls.has(id)) return bad(`No tool call found for function call output with call_id ${String(id)}.`, 'input')
  const odd = items.find(
    ({ type, arguments: input, name }) => type === 'function_call' && (typeof input !== 'string' || typeof name !== 'string'),
  )
  return odd ? bad("Missing required parameter: 'arguments' or 'name' of a function call.", 'input') : undefined
}

/** OpenAI, reasoning guide: thoughts before a call come back with it, and nothing stands between. */
function thoughts(items: readonly Json[], issued: ReadonlySet<string>): Problem | undefined {
  for (const [at, item] of items.entries()) {
    if (item.type === 'reasoning') {
      if (!Array.isArray(item.summary)) return bad(`Missing required parameter: 'input[${at}].summary'.`, `input[${at}].summary`)
      if (item.encrypted_content != null && !issued.has(string(item.encrypted_content))) {
        const message = `The encrypted content ${string(item.encrypted_content).slice(0, 8)}... could not be verified.`
        return bad(message, undefined, 'invalid_encrypted_content')
      }
      if (items[at + 1] === undefined) {
        return bad(`Item '${string(item.id)}' of type 'reasoning' was provided without its required following item.`, 'input')
      }
    }
    if (item.type === 'function_call' && string(item.id).includes('think') && items[at - 1]?.type !== 'reasoning') {
      return bad(`Item '${string(item.id)}' of type 'function_call' was provided without its required 'reasoning' item.`, 'input')
    }
  }
  return undefined
}
