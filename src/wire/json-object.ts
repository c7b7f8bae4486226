import { isRecord, parseJson, type Slot } from '../protocol/json.ts'
import { limits } from '../protocol/limits.ts'

/** A frame as the object that it should be. `name`: what it is called where it is refused. */
export function parseObject(text: string, name: string, refusal: (message: string) => Error): Slot {
  let value: unknown
  try {
    value = parseJson(text, limits.depth)
  } catch (cause) {
    throw refusal(cause instanceof RangeError ? `${name} must nest at most ${limits.depth} levels` : 'This is not JSON')
  }
  if (!isRecord(value)) throw refusal(`${name} must be a JSON object`)
  return value
}
