import { isRecord, isTextDeeperThan, type Slot } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { invalid } from '../../wire/openai/parse.ts'

/** A frame as the event that it should be. */
export function parseFrame(frame: string | Uint8Array): Slot {
  if (typeof frame !== 'string') throw invalid('Events are JSON in text frames, not binary frames', undefined, 'invalid_frame')
  if (isTextDeeperThan(frame, limits.depth)) throw invalid(`An event must nest at most ${limits.depth} levels`, undefined, 'invalid_json')
  let value: unknown
  try {
    value = JSON.parse(frame)
  } catch {
    throw invalid('This is not JSON', undefined, 'invalid_json')
  }
  if (!isRecord(value)) throw invalid('An event must be a JSON object', undefined, 'invalid_json')
  return value
}

/** The client's own name for an event, by which an error refers to it. */
export function clientEventId({ event_id: id }: Slot): string | undefined {
  if (id === undefined || id === null) return undefined
  if (typeof id !== 'string') throw invalid('"event_id" must be a string', 'event_id', 'invalid_type')
  if (id.length > limits.idLength)
    throw invalid(`"event_id" must be at most ${limits.idLength} characters long`, 'event_id', 'invalid_value')
  return id
}
