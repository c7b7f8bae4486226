import { issuedSignatures } from '../fixtures.ts'
import { baseModel } from '../scenario.ts'
import { dataUrlFact, type Facts, isObject, type Json, objects, string, type Vendor } from '../vendor.ts'
import { bearer, openaiError, openaiRefusal } from './openai-errors.ts'
import { checkResponses, inputItems } from './openai-responses-check.ts'

/** OpenAI Responses. */
export function openaiResponses(): Vendor {
  const issued = issuedSignatures('responses')
  return {
    name: 'responses',
    fixtures: ['responses'],
    route: (path, body) => (path === '/responses' ? { model: string(body.model), stream: body.stream === true } : undefined),
    models: () => undefined,
    authorized: bearer,
    facts,
    check: ({ body }) => checkResponses({ ...body, model: baseModel(string(body.model)) }, issued),
    refuse: openaiRefusal,
    failure: (problem) => `event: error\ndata: ${JSON.stringify({ ...openaiError(problem), type: 'error', sequence_number: 99 })}\n\n`,
    adapt(events, body) {
      const included = Array.isArray(body.include) && body.include.includes('reasoning.encrypted_content')
      return included ? events : events.map((event) => event.replace(/,"encrypted_content":"[^"]*"/g, ''))
    },
    fold: (events) => {
      const last = events.findLast(({ type }) => /^response[.](completed|incomplete|failed)$/.test(string(type)))
      return last?.response
    },
  }
}

const textOf = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : objects(content)
        .map((part) => string(part.text))
        .join('')

function facts(body: Json): Facts {
  const items = inputItems(body)
  const at = items.findLastIndex(({ role }) => role === 'user')
  const after = items.slice(at + 1)
  const results = after.filter(({ type }) => type === 'function_call_output')
  const format = isObject(body.text) && isObject(body.text.format) ? body.text.format : {}
  return {
    user: textOf(items[at]?.content),
    images: objects(items[at]?.content).flatMap(({ image_url: url }) => dataUrlFact(url) ?? []),
    results: results.map(({ output }) => textOf(output)),
    // Parallel calls stand together; a round ends where something else follows the outputs.
    rounds: after.filter(({ type }, index) => type === 'function_call_output' && after[index + 1]?.type !== 'function_call_output').length,
    tools: objects(body.tools).map((tool) => string(tool.name)),
    schema: format.type === 'json_schema',
  }
}
