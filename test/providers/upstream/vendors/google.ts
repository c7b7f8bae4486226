import { issuedSignatures } from '../fixtures.ts'
import { BAD_KEY, type Facts, imageFact, isObject, type Json, objects, type Problem, type Refusal, string, type Vendor } from '../vendor.ts'
import { checkContents } from './google-check.ts'

const METHOD = /^\/v1(?:beta|alpha)?\/models\/(.+):(streamGenerateContent|generateContent)$/

/** Gemini `generateContent`, as server-sent events with `alt=sse`. */
export function google(): Vendor {
  const issued = issuedSignatures('google')
  return {
    name: 'google',
    fixtures: ['google'],
    route(path) {
      const [, model, method] = METHOD.exec(path) ?? []
      return model === undefined ? undefined : { model: decodeURIComponent(model), stream: method === 'streamGenerateContent' }
    },
    models,
    authorized({ headers, query }) {
      const key = headers['x-goog-api-key'] ?? query.get('key')
      return !!key && key !== BAD_KEY
    },
    facts,
    check(call, known) {
      if (call.stream && call.query.get('alt') !== 'sse') return { status: 400, message: 'Only alt=sse is spoken here' }
      return checkContents(call.body, known, issued)
    },
    refuse,
    failure: (problem) => `data: ${JSON.stringify({ error: errorBody(problem) })}\r\n\r\n`,
    adapt: (events) => events,
    fold,
  }
}

function models(path: string): unknown {
  const model = (id: string) => ({
    name: `models/${id}`,
    version: '001',
    displayName: id,
    inputTokenLimit: 1_048_576,
    outputTokenLimit: 65_536,
    supportedGenerationMethods: ['generateContent', 'countTokens'],
  })
  if (path === '/v1beta/models') return { models: ['gemini-3-pro', 'gemini-3-flash', 'text', 'tools', 'thinking'].map(model) }
  const [, id] = /^\/v1beta\/models\/([^/:]+)$/.exec(path) ?? []
  return id === undefined ? undefined : model(decodeURIComponent(id))
}

const STATUS: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  408: 'DEADLINE_EXCEEDED',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
  529: 'UNAVAILABLE',
}

function errorBody({ status, message }: Problem) {
  const retry = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '0.02s' }
  const reason = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID', domain: 'googleapis.com' }
  const details = status === 429 ? [retry] : status === 401 ? [reason] : undefined
  return { code: status, message, status: STATUS[status] ?? 'UNKNOWN', ...(details && { details }) }
}

/** A wrong key is a 400 there, with the reason in the details; the rest is as one expects. */
function refuse(problem: Problem): Refusal {
  const status = problem.status === 401 ? 400 : problem.status
  const error =
    problem.status === 401
      ? { ...errorBody(problem), code: 400, message: 'API key not valid. Please pass a valid API key.', status: 'INVALID_ARGUMENT' }
      : errorBody(problem)
  return { status, headers: { 'content-type': 'application/json; charset=UTF-8' }, body: JSON.stringify({ error }, null, 2) }
}

const parts = (content: Json | undefined): Json[] => objects(content?.parts)
const answers = (content: Json): Json[] =>
  parts(content)
    .map((part) => part.functionResponse)
    .filter(isObject)

function facts(body: Json): Facts {
  const contents = objects(body.contents)
  const at = contents.findLastIndex((content) => content.role !== 'model' && answers(content).length === 0)
  const after = contents.slice(at + 1)
  const config = isObject(body.generationConfig) ? body.generationConfig : {}
  return {
    user: parts(contents[at])
      .map((part) => string(part.text))
      .join(''),
    images: parts(contents[at]).flatMap(({ inlineData }) =>
      isObject(inlineData) ? (imageFact(inlineData.mimeType, inlineData.data) ?? []) : [],
    ),
    results: after.flatMap(answers).map(({ response }) => JSON.stringify(response)),
    rounds: after.filter((content) => answers(content).length > 0).length,
    tools: objects(body.tools).flatMap((tool) => objects(tool.functionDeclarations).map(({ name }) => string(name))),
    schema: config.responseMimeType === 'application/json' && (config.responseSchema ?? config.responseJsonSchema) !== undefined,
  }
}

/** Pieces of text that belong together become one part, as `generateContent` gives it. */
function fold(events: readonly Json[]): unknown {
  const merged: Json[] = []
  for (const event of events) {
    for (const part of parts(objects(event.candidates)[0]?.content as Json | undefined)) {
      const last = merged.at(-1)
      const joins =
        last && typeof part.text === 'string' && typeof last.text === 'string' && last.thought === part.thought && !last.thoughtSignature
      if (joins) merged[merged.length - 1] = { ...last, ...part, text: `${string(last.text)}${string(part.text)}` }
      else merged.push(part)
    }
  }
  const last = events.at(-1) ?? {}
  const [candidate] = objects(last.candidates)
  return { ...last, ...(candidate && { candidates: [{ ...candidate, content: { role: 'model', parts: merged } }] }) }
}
