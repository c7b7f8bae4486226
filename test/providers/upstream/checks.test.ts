import { expect, test } from 'vitest'
import { loadFixture } from './fixtures.ts'
import { startUpstream } from './index.ts'
import type { Json } from './vendor.ts'

/** A request of a fixture that is right, changed into one that the vendor refuses. Without the change it is let in. */
interface Wrong {
  readonly vendor: 'openai' | 'responses' | 'compatible' | 'anthropic' | 'google'
  readonly of: string
  readonly round?: number
  readonly change: (body: any, headers: Record<string, string>) => void // eslint-disable-line
  readonly says: RegExp
}

const PATHS = {
  openai: '/openai/v1/chat/completions',
  compatible: '/compatible/v1/chat/completions',
  responses: '/openai/v1/responses',
  anthropic: '/anthropic/v1/messages',
  google: '/google/v1beta/models/echo:streamGenerateContent?alt=sse',
}

const wrongs: readonly Wrong[] = [
  { vendor: 'openai', of: 'text', change: (body) => (body.messages = []), says: /too short/ },
  { vendor: 'openai', of: 'text', change: (body) => (body.speed = 'fast'), says: /Unrecognized request argument supplied: speed/ },
  { vendor: 'openai', of: 'text', change: (body) => (body.stream = false), says: /only allowed when 'stream'/ },
  { vendor: 'openai', of: 'text', change: (body) => (body.messages[0].role = 'human'), says: /Invalid value: 'human'/ },
  {
    vendor: 'openai',
    of: 'text',
    change: (body) => Object.assign(body, { model: 'gpt-5@text', max_tokens: 5 }),
    says: /max_completion_tokens/,
  },
  {
    vendor: 'openai',
    of: 'image',
    change: (body) => (body.messages[0].content[1].image_url.url = 'data:image/png;base64,%'),
    says: /Invalid image/,
  },
  { vendor: 'openai', of: 'tools', change: (body) => (body.tools[0].function.name = 'with space'), says: /function.name/ },
  { vendor: 'openai', of: 'tools', round: 1, change: (body) => body.messages.pop(), says: /did not have response messages/ },
  {
    vendor: 'openai',
    of: 'tools',
    round: 1,
    change: (body) => (body.messages[1].tool_calls[0].function.arguments = {}),
    says: /Invalid tool call/,
  },
  {
    vendor: 'openai',
    of: 'json',
    change: (body) => delete body.response_format.json_schema.schema.additionalProperties,
    says: /additionalProperties/,
  },
  { vendor: 'openai', of: 'json', change: (body) => body.response_format.json_schema.schema.required.pop(), says: /Missing 'age'/ },
  { vendor: 'compatible', of: 'tools-whole', round: 1, change: (body) => body.messages.splice(1, 1), says: /preceeding message/ },
  { vendor: 'responses', of: 'text', change: (body) => (body.messages = []), says: /Unknown parameter: 'messages'/ },
  { vendor: 'responses', of: 'text', change: (body) => (body.input[0].content[0].type = 'text'), says: /Invalid value: 'text'/ },
  {
    vendor: 'responses',
    of: 'text',
    change: (body) => Object.assign(body, { model: 'o3@text', temperature: 0 }),
    says: /'temperature' is not supported/,
  },
  { vendor: 'responses', of: 'tools', change: (body) => (body.tools[0].parameters.required = []), says: /Missing 'city'/ },
  { vendor: 'responses', of: 'tools', round: 1, change: (body) => body.input.pop(), says: /No tool output found for function call/ },
  { vendor: 'responses', of: 'tools', round: 1, change: (body) => body.input.splice(2, 1), says: /No tool call found/ },
  {
    vendor: 'responses',
    of: 'thinking',
    round: 1,
    change: (body) => body.input.splice(1, 1),
    says: /without its required 'reasoning' item/,
  },
  {
    vendor: 'responses',
    of: 'thinking',
    round: 1,
    change: (body) => (body.input[1].encrypted_content += 'x'),
    says: /could not be verified/,
  },
  { vendor: 'anthropic', of: 'text', change: (body) => delete body.max_tokens, says: /max_tokens: Field required/ },
  { vendor: 'anthropic', of: 'text', change: (_, headers) => delete headers['anthropic-version'], says: /header is required/ },
  { vendor: 'anthropic', of: 'text', change: (body) => (body.seed = 1), says: /seed: Extra inputs are not permitted/ },
  {
    vendor: 'anthropic',
    of: 'text',
    change: (body) => (body.messages[0].content = [{ type: 'text', text: '' }]),
    says: /must be non-empty/,
  },
  {
    vendor: 'anthropic',
    of: 'text',
    change: (body) => (body.messages[0].role = 'assistant'),
    says: /first message must use the "user" role/,
  },
  {
    vendor: 'anthropic',
    of: 'text',
    change: (body, headers) => Object.assign(headers, { 'anthropic-version': '2026-10-21' }) && (body.temperature = 1),
    says: /temperature: sampling/,
  },
  { vendor: 'anthropic', of: 'thinking', change: (body) => (body.temperature = 0.2), says: /may only be set to 1/ },
  { vendor: 'anthropic', of: 'thinking', change: (body) => (body.max_tokens = 1000), says: /must be greater than/ },
  { vendor: 'anthropic', of: 'thinking', change: (body) => (body.tool_choice = { type: 'any' }), says: /forces tool use/ },
  { vendor: 'anthropic', of: 'thinking', round: 1, change: (body) => body.messages[1].content.splice(0, 2), says: /Expected `thinking`/ },
  {
    vendor: 'anthropic',
    of: 'thinking',
    round: 1,
    change: (body) => (body.messages[1].content[1].data = 'eA=='),
    says: /Invalid `signature`/,
  },
  { vendor: 'anthropic', of: 'tools', change: (body) => (body.tools[0].parameters = {}), says: /parameters: Extra inputs/ },
  { vendor: 'anthropic', of: 'tools', round: 1, change: (body) => body.messages[2].content.pop(), says: /without `tool_result` blocks/ },
  { vendor: 'anthropic', of: 'tools', round: 1, change: (body) => body.messages[1].content.pop(), says: /unexpected `tool_use_id`/ },
  {
    vendor: 'anthropic',
    of: 'tools',
    round: 1,
    change: (body) => body.messages[2].content.unshift({ type: 'text', text: 'x' }),
    says: /must come first/,
  },
  { vendor: 'anthropic', of: 'image', change: (body) => (body.messages[0].content[1].source.media_type = 'image/bmp'), says: /media_type/ },
  {
    vendor: 'anthropic',
    of: 'json',
    change: (body) => delete body.output_config.format.schema.additionalProperties,
    says: /explicitly set to false/,
  },
  { vendor: 'google', of: 'text', change: (body) => (body.contents = []), says: /contents is not specified/ },
  { vendor: 'google', of: 'text', change: (body) => (body.messages = []), says: /Unknown name "messages"/ },
  { vendor: 'google', of: 'text', change: (body) => (body.contents[0].role = 'assistant'), says: /valid role/ },
  { vendor: 'google', of: 'text', change: (body) => (body.contents[0].parts = [{ thought: true }]), says: /required oneof field 'data'/ },
  {
    vendor: 'google',
    of: 'thinking',
    change: (body) => Object.assign(body.generationConfig.thinkingConfig, { thinkingBudget: 1, thinkingLevel: 'LOW' }),
    says: /only set one/,
  },
  {
    vendor: 'google',
    of: 'thinking',
    round: 1,
    change: (body) => delete body.contents[1].parts[1].thoughtSignature,
    says: /missing a thought_signature/,
  },
  {
    vendor: 'google',
    of: 'thinking',
    round: 1,
    change: (body) => (body.contents[1].parts[1].thoughtSignature += 'x'),
    says: /Corrupted thought signature/,
  },
  { vendor: 'google', of: 'tools', round: 1, change: (body) => body.contents[2].parts.pop(), says: /number of function response parts/ },
  {
    vendor: 'google',
    of: 'tools',
    round: 1,
    change: (body) => (body.contents[2].parts[0].functionResponse.response = 'sunny'),
    says: /google.protobuf.Struct/,
  },
  { vendor: 'google', of: 'tools', round: 1, change: (body) => body.contents.splice(1, 1), says: /immediately after a function call turn/ },
  {
    vendor: 'google',
    of: 'tools',
    change: ({
      tools: [
        {
          functionDeclarations: [one],
        },
      ],
    }) => Object.assign(one, { parameters: one.parametersJsonSchema }),
    says: /Unknown name "additionalProperties"/,
  },
]

test.each(wrongs)('$vendor refuses a request like $of: $says', async ({ vendor, of, round = 0, change, says }) => {
  const upstream = await startUpstream()
  const { request } = loadFixture([vendor], of)?.[round] ?? {}
  const body = JSON.parse(request?.text ?? '{}') as Json
  const headers = { ...request?.headers, authorization: 'Bearer key', 'x-api-key': 'key', 'x-goog-api-key': 'key' }
  change(body, headers)
  const response = await fetch(`${upstream.url}${PATHS[vendor]}`, { method: 'POST', headers, body: JSON.stringify(body) })
  expect(response.status).toBe(400)
  const { error } = (await response.json()) as { error: { message: string } }
  expect(error.message).toMatch(says)
})
