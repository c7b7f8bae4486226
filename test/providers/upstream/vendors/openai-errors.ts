import type { Call, Problem, Refusal } from '../vendor.ts'
import { BAD_KEY } from '../vendor.ts'

const TYPES: Readonly<Record<number, string>> = {
  401: 'invalid_request_error',
  403: 'permission_error',
  408: 'timeout',
  429: 'requests',
  500: 'server_error',
  502: 'server_error',
  503: 'server_error',
  504: 'server_error',
  529: 'server_error',
}

export function openaiError({ status, message, code, param }: Problem) {
  return { message, type: TYPES[status] ?? 'invalid_request_error', param: param ?? null, code: code ?? null }
}

export function openaiRefusal(problem: Problem): Refusal {
  const limited = problem.status === 429 || problem.status === 503
  return {
    status: problem.status,
    headers: { 'content-type': 'application/json', ...(limited && { 'retry-after': '1', 'retry-after-ms': '20' }) },
    body: JSON.stringify({ error: openaiError(problem) }, null, 2),
  }
}

export function bearer({ headers }: Pick<Call, 'headers'>): boolean {
  const [, key] = /^Bearer (.+)$/.exec(String(headers.authorization ?? '')) ?? []
  return key !== undefined && key !== BAD_KEY
}

export function openaiModels(path: string): unknown {
  const model = (id: string) => ({ id, object: 'model', created: 1_760_000_000, owned_by: 'upstream' })
  if (path === '/models') return { object: 'list', data: ['gpt-5.1', 'gpt-4.1-mini', 'text', 'tools', 'thinking'].map(model) }
  const [, id] = /^\/models\/([^/]+)$/.exec(path) ?? []
  return id === undefined ? undefined : model(decodeURIComponent(id))
}

/** OpenAI, reasoning guide: these models take no sampling settings. */
export const reasons = (model: string): boolean => /^(o\d|gpt-5|thinking)/.test(model)
