import type * as z from 'zod/mini'
import { UampError } from '../../protocol/errors.ts'
import { JsonBoundError, parseJson as parseText } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { parseValue } from '../../wire/parse.ts'
import { a2aError } from './errors.ts'

/** A body as JSON. Throws `PARSE_ERROR`. */
export function parseJson(text: string): unknown {
  try {
    return parseText(text, limits.depth)
  } catch (cause) {
    if (cause instanceof JsonBoundError) {
      if (cause.bound === 'members') throw new UampError('too_large', `The body ${cause.message}`)
      throw a2aError('INVALID_REQUEST', `The body ${cause.message}`)
    }
    throw a2aError('PARSE_ERROR', 'The body of this request is not JSON')
  }
}

/** Parameters by their schema. Throws `INVALID_PARAMS`, and says in `details.field` where they are wrong. */
export function parseParams<T extends z.ZodMiniType>(schema: T, value: unknown): z.output<T> {
  try {
    return parseValue(schema, value)
  } catch (thrown) {
    // Our own mistake, and not the client's.
    if (!(thrown instanceof UampError)) throw thrown
    const { message, details } = thrown
    const field = details?.['param']
    if (typeof field === 'string') throw a2aError('INVALID_PARAMS', message, { field })
    throw a2aError('INVALID_PARAMS', message.replace(/^The body( of this request)?/, 'The parameters'))
  }
}

/** Whether a body of this type may be JSON. Without a type it is taken for what it should be. */
export function isJsonType(type: string | null): boolean {
  return type === null || /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type.trim())
}
