import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { fill, fillings, type LoadFixture } from './fixtures.ts'
import { play } from './play.ts'
import { parseScenario, scenarioOf } from './scenario.ts'
import { BAD_KEY, type Call, type Facts, type Json, type Problem, type Refusal, type Vendor } from './vendor.ts'

export interface Asked {
  readonly vendor: Vendor
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  /** `undefined` if it is not a JSON object. */
  readonly body: Json | undefined
  readonly id: number
  readonly load: LoadFixture
  readonly scripted: string | Refusal | undefined
  readonly cut: () => void
  /** True the first time that it is asked about this key. */
  readonly isFirst: (key: string) => boolean
}

const OVERLOADED: Problem = { status: 503, message: 'The server is overloaded. Please try again later.', code: 'overloaded' }
const FAILED: Problem = { status: 529, message: 'Overloaded in the middle of the answer', code: 'overloaded' }

export async function answer(response: ServerResponse, asked: Asked): Promise<void> {
  const { vendor, method, path, query, headers, body, id, load, isFirst, cut } = asked
  const refuse = (problem: Problem) => send(response, vendor.refuse(problem), id)
  if (!vendor.authorized({ headers, query })) return refuse(unauthorized)
  const models = method === 'GET' ? vendor.models(path) : undefined
  if (models !== undefined) return send(response, json(200, models), id)
  if (method !== 'POST') return refuse({ status: 405, message: `Not allowed: ${method}` })
  if (!body) return refuse({ status: 400, message: 'We could not parse the JSON body of your request.' })

  const route = vendor.route(path, body)
  if (!route) return refuse({ status: 404, message: `Invalid URL (POST ${path})` })
  const { model, stream } = route
  const { scripted = headers['x-upstream']?.toString() ?? scenarioOf(model) } = asked
  if (typeof scripted !== 'string') return send(response, scripted, id)
  const { name, delivery } = parseScenario(scripted)
  const fixed = fixedAnswer(vendor, name, body)
  if (name === 'silent') return
  if (name === 'comments-only') {
    response.writeHead(200, { 'content-type': 'text/event-stream', ...ids(id) })
    return play(response, [], { how: new Set(['endless-comments']), failure: '', bareFailure: '', cut })
  }
  if (fixed) return send(response, fixed, id)
  if (delivery.has('flaky') && isFirst(`${vendor.name} ${model}`)) return refuse(OVERLOADED)

  const facts = vendor.facts(body)
  const call: Call = { vendor, model, stream, path, query, headers, body }
  const exchanges = load(vendor.fixtures, name) ?? load(vendor.fixtures, 'echo') ?? []
  const exchange = exchanges[Math.min(facts.rounds, exchanges.length - 1)]
  if (!exchange) throw new Error(`No fixture for ${name}`)
  const filled = exchange.chunks.map((chunk) => fill(chunk.text ?? '', fillings(facts, model, id)))
  const problem = vendor.check(call, facts) ?? misused(name, filled, facts)
  if (problem) return refuse(problem)

  const playing = { how: delivery, failure: vendor.failure(FAILED), bareFailure: vendor.refuse(FAILED).body, cut }
  if (!stream) {
    const { headers: plain, body: text } = json(200, vendor.fold(filled.flatMap(dataOf)))
    response.writeHead(200, { ...plain, ...ids(id) })
    const half = Math.ceil(text.length / 2)
    const how = new Set([...delivery].filter((way) => way !== 'comments' && way !== 'crlf'))
    return play(response, [text.slice(0, half), text.slice(half)], { ...playing, how })
  }
  response.writeHead(200, { ...exchange.answer?.headers, ...ids(id) })
  response.flushHeaders()
  await play(response, vendor.adapt(filled, body), playing)
}

const unauthorized: Problem = { status: 401, message: `Incorrect API key provided: ${BAD_KEY}`, code: 'invalid_api_key' }

/** The JSON of the events of one chunk. */
function dataOf(chunk: string): Json[] {
  return chunk
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:') && line.slice(5).trim() !== '[DONE]')
    .map((line) => JSON.parse(line.slice(5)) as Json)
}

/** Answers that need no fixture: errors by their number, and what is no answer of an API at all. */
function fixedAnswer(vendor: Vendor, name: string, body: Json): Refusal | undefined {
  const status = /^error-(\d{3})$/.exec(name)?.[1]
  if (status) return vendor.refuse(errors[status] ?? { status: Number(status), message: `This model answers ${status}` })
  const html = '<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>'
  switch (name) {
    case 'html':
      return { status: 502, headers: { 'content-type': 'text/html' }, body: html }
    case 'html-200':
      return { status: 200, headers: { 'content-type': 'text/html' }, body: html }
    case 'error-in-200':
      return { ...vendor.refuse({ status: 400, message: 'An error, though the status says 200' }), status: 200 }
    case 'empty':
      return { status: 200, headers: { 'content-type': 'text/event-stream' }, body: '' }
    case 'not-json':
      return {
        status: 200,
        headers: { 'content-type': body.stream ? 'text/event-stream' : 'application/json' },
        body: 'data: {"half": \n\n',
      }
    default:
      return undefined
  }
}

const errors: Readonly<Record<string, Problem>> = {
  400: { status: 400, message: 'This model answers 400', code: 'invalid_value', param: 'messages' },
  401: unauthorized,
  403: { status: 403, message: 'You do not have access to this model' },
  404: { status: 404, message: 'The model `error-404` does not exist or you do not have access to it.', code: 'model_not_found' },
  408: { status: 408, message: 'The request timed out' },
  413: { status: 413, message: 'Request exceeds the maximum size' },
  429: { status: 429, message: 'Rate limit reached. Please try again later.', code: 'rate_limit_exceeded' },
  500: { status: 500, message: 'The server had an error while processing your request' },
  529: { status: 529, message: 'Overloaded', code: 'overloaded' },
}

/** A model cannot call tools that it was not given, nor follow a schema that it does not know. */
function misused(scenario: string, events: readonly string[], { tools, schema }: Facts): Problem | undefined {
  const calls = events.some((event) => event.includes('"name":"weather"'))
  if (calls && !tools.includes('weather'))
    return { status: 400, message: `The scenario '${scenario}' needs the tool 'weather' in the request` }
  const json = scenario === 'json' || scenario === 'bad-json'
  return json && !schema ? { status: 400, message: `The scenario '${scenario}' needs a JSON schema in the request` } : undefined
}

const json = (status: number, body: unknown): Refusal => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
})

/** Each vendor has its own name for it; clients read theirs. */
const ids = (id: number) => ({ 'x-request-id': `req_${id}`, 'request-id': `req_${id}` })

function send(response: ServerResponse, { status, headers, body }: Refusal, id: number): void {
  response.writeHead(status, { ...headers, ...ids(id), 'content-length': Buffer.byteLength(body) }).end(body)
}
