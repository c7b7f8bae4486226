import { isRecord, isTextDeeperThan, jsonIn, type Slot } from '../protocol/json.ts'
import { limits } from '../protocol/limits.ts'

/** A frame as the object that it should be. `name`: what it is called where it is refused. */
export function parseObject(text: string, name: string, refusal: (message: string) => Error): Slot {
  // `JSON.parse` takes any depth, but what comes after it recurses.
  if (isTextDeeperThan(text, limits.depth)) throw refusal(`${name} must nest at most ${limits.depth} levels`)
  const value = jsonIn(text)
  if (value === undefined) throw refusal('This is not JSON')
  if (!isRecord(value)) throw refusal(`${name} must be a JSON object`)
  return value
}
