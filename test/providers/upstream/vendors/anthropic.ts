import { issuedSignatures } from '../fixtures.ts'
import { BAD_KEY, type Facts, imageFact, isObject, type Json, objects, type Problem, type Refusal, string, type Vendor } from '../vendor.ts'
import { checkMessages } from './anthropic-check.ts'

/** Anthropic Messages. */
export function anthropic(): Vendor {
  const issued = issuedSignatures('anthropic')
  return {
    name: 'anthropic',
    fixtures: ['anthropic'],
    route: (path, body) => (path === '/v1/messages' ? { model: string(body.model), stream: body.stream === true } : undefined),
    models,
    authorized({ headers }) {
      const key = headers['x-api-key'] ?? /^Bearer (.+)$/.exec(String(headers.authorization ?? ''))?.[1]
      return key !== undefined && key !== BAD_KEY
    },
    facts,
    check: (call) => checkMessages(call, issued),
    refuse,
    failure: (problem) => `event: error\ndata: ${JSON.stringify({ type: 'error', error: errorBody(problem) })}\n\n`,
    adapt: (events) => events,
    fold,
  }
}

function models(path: string): unknown {
  const model = (id: string) => ({ type: 'model', id, display_name: id, created_at: '2026-02-01T00:00:00Z' })
  if (path === '/v1/models') {
    const data = ['claude-opus-5', 'claude-haiku-5', 'text', 'tools', 'thinking'].map(model)
    return { data, has_more: false, first_id: data[0]?.id, last_id: data.at(-1)?.id }
  }
  const [, id] = /^\/v1\/models\/([^/]+)$/.exec(path) ?? []
  return id === undefined ? undefined : model(decodeURIComponent(id))
}

const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}

const errorBody = ({ status, message }: Problem) => ({
  type: TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error'),
  message,
})

function refuse(problem: Problem): Refusal {
  const { status } = problem
  return {
    status,
    headers: {
      'content-type': 'application/json',
      ...(status === 429 && { 'retry-after': '1', 'anthropic-ratelimit-requests-remaining': '0' }),
    },
    body: JSON.stringify({ type: 'error', error: errorBody(problem), request_id: 'req_upstream' }),
  }
}

const blocks = (content: unknown): Json[] => (typeof content === 'string' ? [{ type: 'text', text: content }] : objects(content))
const text = (content: unknown): string =>
  blocks(content)
    .map((block) => string(block.text))
    .join('')

function facts(body: Json): Facts {
  const messages = objects(body.messages)
  const isAnswer = (message: Json) => blocks(message.content).some(({ type }) => type === 'tool_result')
  const at = messages.findLastIndex((message) => message.role === 'user' && !isAnswer(message))
  const after = messages.slice(at + 1)
  const format = isObject(body.output_config) && isObject(body.output_config.format) ? body.output_config.format : {}
  return {
    user: text(messages[at]?.content),
    images: blocks(messages[at]?.content).flatMap(({ type, source }) => (type === 'image' && isObject(source) ? imageOf(source) : [])),
    results: after
      .flatMap(({ content }) => blocks(content).filter(({ type }) => type === 'tool_result'))
      .map(({ content }) => text(content)),
    rounds: after.filter(isAnswer).length,
    tools: objects(body.tools).map((tool) => string(tool.name)),
    schema: format.type === 'json_schema',
  }
}

function imageOf(source: Json): string {
  return source.type === 'url' ? `image at ${string(source.url)}` : (imageFact(source.media_type, source.data) ?? 'no image')
}

function fold(events: readonly Json[]): unknown {
  let message: Json = {}
  const content: Json[] = []
  const inputs: string[] = []
  for (const event of events) {
    const index = Number(event.index)
    const delta = isObject(event.delta) ? event.delta : {}
    const block = content[index] ?? {}
    if (event.type === 'message_start' && isObject(event.message)) message = event.message
    else if (event.type === 'content_block_start' && isObject(event.content_block)) content[index] = { ...event.content_block }
    else if (event.type === 'content_block_delta') {
      if (delta.type === 'text_delta') block.text = `${string(block.text)}${string(delta.text)}`
      else if (delta.type === 'thinking_delta') block.thinking = `${string(block.thinking)}${string(delta.thinking)}`
      else if (delta.type === 'signature_delta') block.signature = delta.signature
      else if (delta.type === 'input_json_delta') inputs[index] = `${inputs[index] ?? ''}${string(delta.partial_json)}`
    } else if (event.type === 'content_block_stop' && block.type === 'tool_use') block.input = JSON.parse(inputs[index] || '{}')
    else if (event.type === 'message_delta') {
      message = { ...message, ...delta, usage: { ...(message.usage as Json), ...(event.usage as Json) } }
    }
  }
  return { ...message, content }
}
