import { baseModel } from '../scenario.ts'
import { dataUrlFact, type Facts, isObject, type Json, objects, type Problem, string, type Vendor } from '../vendor.ts'
import { checkChat } from './openai-chat-check.ts'
import { bearer, openaiError, openaiModels, openaiRefusal } from './openai-errors.ts'

/** OpenAI Chat Completions, with the checks that OpenAI makes. */
export function openaiChat(): Vendor {
  return chat('openai', ['openai'], checkChat)
}

/** Its relatives: they think aloud in `reasoning_content`, and ignore what they do not know. */
export function compatibleChat(): Vendor {
  return chat('compatible', ['compatible', 'openai'], (body) => checkChat({ ...body, model: 'compatible' }, { lenient: true }))
}

type Check = (body: Json, options?: { readonly lenient: boolean }) => Problem | undefined

function chat(name: 'openai' | 'compatible', fixtures: readonly string[], check: Check): Vendor {
  return {
    name,
    fixtures,
    route: (path, body) => (path === '/chat/completions' ? { model: string(body.model), stream: body.stream === true } : undefined),
    models: openaiModels,
    // Ollama and many local servers want no key at all.
    authorized: (call) => (name === 'compatible' && call.headers.authorization === undefined) || bearer(call),
    facts,
    check: ({ body }) => check(name === 'openai' ? { ...body, model: baseModel(string(body.model)) } : body),
    refuse: openaiRefusal,
    failure: (problem) => `data: ${JSON.stringify({ error: openaiError(problem) })}\n\n`,
    adapt(events, body) {
      const usage = isObject(body.stream_options) && body.stream_options.include_usage === true
      return usage ? events : events.filter((event) => !event.includes('"choices":[],'))
    },
    fold,
  }
}

function facts(body: Json): Facts {
  const messages = objects(body.messages)
  const at = messages.findLastIndex(({ role }) => role === 'user')
  const content = messages[at]?.content
  const after = messages.slice(at + 1)
  const format = isObject(body.response_format) ? body.response_format : {}
  return {
    user:
      typeof content === 'string'
        ? content
        : objects(content)
            .map((part) => string(part.text))
            .join(''),
    images: objects(content).flatMap((part) => (isObject(part.image_url) ? (dataUrlFact(part.image_url.url) ?? []) : [])),
    results: after.filter(({ role }) => role === 'tool').map(({ content: result }) => textOf(result)),
    rounds: after.filter(({ role, tool_calls }) => role === 'assistant' && objects(tool_calls).length > 0).length,
    tools: objects(body.tools).flatMap((tool) => (isObject(tool.function) ? string(tool.function.name) : [])),
    schema: format.type === 'json_schema',
  }
}

const textOf = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : objects(content)
        .map((part) => string(part.text))
        .join('')

interface ToolCall {
  id?: string
  type?: string
  function: { name: string; arguments: string }
}

interface Delta {
  readonly content?: string | null
  readonly refusal?: string | null
  readonly reasoning_content?: string | null
  readonly reasoning?: string | null
  readonly tool_calls?: readonly {
    readonly index: number
    readonly id?: string
    readonly type?: string
    readonly function?: Partial<ToolCall['function']>
  }[]
}

function fold(events: readonly Json[]): unknown {
  const message: Record<string, unknown> = { role: 'assistant', content: null, refusal: null }
  const calls: ToolCall[] = []
  let finish: unknown = null
  for (const { choices } of events) {
    const [choice] = objects(choices)
    const delta = (choice?.delta ?? {}) as Delta
    for (const key of ['content', 'refusal', 'reasoning_content', 'reasoning'] as const) {
      if (delta[key]) message[key] = `${string(message[key])}${delta[key]}`
    }
    for (const { index, id, type, function: piece } of delta.tool_calls ?? []) {
      const call = (calls[index] ??= { ...(id && { id }), ...(type && { type }), function: { name: '', arguments: '' } })
      call.function.name += piece?.name ?? ''
      call.function.arguments += piece?.arguments ?? ''
    }
    finish = choice?.finish_reason ?? finish
  }
  const [first] = events
  return {
    id: first?.id,
    object: 'chat.completion',
    created: first?.created,
    model: first?.model,
    choices: [{ index: 0, message: { ...message, ...(calls.length > 0 && { tool_calls: calls }) }, logprobs: null, finish_reason: finish }],
    usage: events.findLast(({ usage }) => usage)?.usage,
    service_tier: 'default',
  }
}
