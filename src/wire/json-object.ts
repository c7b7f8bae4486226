import { UampError } from '../protocol/errors.ts'
import { isRecord, JsonBoundError, parseJson, type Slot } from '../protocol/json.ts'
import { limits } from '../protocol/limits.ts'

/** A frame as the object that it should be. `name`: what it is called where it is refused. */
export function parseObject(text: string, name: string, refusal: (message: string) => Error): Slot {
  let value: unknown
  try {
    value = parseJson(text, limits.depth)
  } catch (cause) {
    if (!(cause instanceof JsonBoundError)) throw refusal('This is not JSON')
    throw cause.bound === 'members' ? new UampError('too_large', `${name} ${cause.message}`) : refusal(`${name} ${cause.message}`)
  }
  if (!isRecord(value)) throw refusal(`${name} must be a JSON object`)
  return value
}
