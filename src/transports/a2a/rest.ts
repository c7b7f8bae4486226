/** What the REST bindings share. A router has no way to say `/tasks/{id}:cancel`, so paths are read here. */
import type { KnownCall, RefusalOptions, Streamed } from '../../core/ports/transport.ts'
import { reportError } from '../../core/edge/report-error.ts'
import type { UampError } from '../../protocol/errors.ts'
import type { Parts } from './binding.ts'
import { a2aError } from './errors.ts'
import { isJsonType, parseJson } from './parse.ts'
import type { Refusal } from './refusal.ts'

/** What a path answers to, by method. */
export type Resource<T> = Readonly<Partial<Record<string, T>>>

export interface RestBinding {
  readonly refusal: Refusal
  /** Where an error has another status than it has in 1.0. */
  readonly statusOf?: (reason: unknown) => RefusalOptions | undefined
  /** `body` is read when it is asked for: who subscribes or cancels has nothing to say. */
  answer(call: KnownCall, body: () => unknown): Promise<Response | Streamed>
}

export async function answerRest({ host }: Parts, call: KnownCall, binding: RestBinding): Promise<Response | Streamed> {
  const { request } = call
  const text = request.method === 'POST' ? await request.text() : ''
  try {
    return await binding.answer(call, () => bodyIn(request, text))
  } catch (thrown) {
    const error = reportError(host, thrown, { transport: 'a2a', message: 'A method failed', url: request.url })
    return binding.refusal(error, allowed(error) ?? binding.statusOf?.(error.details?.['reason']))
  }
}

/** Nothing at all is an empty object. */
function bodyIn({ headers }: Request, text: string): unknown {
  if (text.trim() === '') return {}
  if (isJsonType(headers.get('content-type'))) return parseJson(text)
  throw a2aError('CONTENT_TYPE_NOT_SUPPORTED', 'A request is sent as application/a2a+json or application/json')
}

/** The segments of a path behind `mount`, decoded. */
export function segmentsAfter(mount: string, path: string): string[] {
  const rest = path.slice(path.indexOf(`${mount}/`) + mount.length)
  return rest.split('/').flatMap((segment) => (segment === '' ? [] : [decoded(segment)]))
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

/** What a resource does for a method. Throws where there is none of them. */
export function at<T>(resource: Resource<T> | undefined, method: string): T {
  if (!resource) throw a2aError('METHOD_NOT_FOUND', 'There is nothing at this path')
  const found = resource[method === 'HEAD' ? 'GET' : method]
  if (found !== undefined) return found
  throw a2aError('METHOD_NOT_FOUND', `${method} is not possible here`, { allow: Object.keys(resource).join(', ') })
}

/** `{id}:cancel` and `{id}:subscribe`. An id may hold other colons. */
export function taskNamed(segment: string): { readonly id: string; readonly action?: 'cancel' | 'subscribe' } {
  const action = (['cancel', 'subscribe'] as const).find((word) => segment.endsWith(`:${word}`))
  return action ? { id: segment.slice(0, -action.length - 1), action } : { id: segment }
}

/** HTTP has a status of its own for a path that has other methods, and wants to be told which. */
function allowed({ details }: UampError): RefusalOptions | undefined {
  const allow = details?.['allow']
  return typeof allow === 'string' ? { status: 405, headers: { allow } } : undefined
}
