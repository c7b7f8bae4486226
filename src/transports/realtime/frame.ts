import type { Slot } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { parseObject } from '../../wire/json-object.ts'
import { invalid } from '../../wire/parse.ts'

/** A frame as the event that it should be. */
export function parseFrame(frame: string | Uint8Array): Slot {
  if (typeof frame !== 'string') throw invalid('Events are JSON in text frames, not binary frames', undefined, 'invalid_frame')
  return parseObject(frame, 'An event', (message) => invalid(message, undefined, 'invalid_json'))
}

/** The client's own name for an event, by which an error refers to it. */
export function clientEventId({ event_id: id }: Slot): string | undefined {
  if (id === undefined || id === null) return undefined
  if (typeof id !== 'string') throw invalid('"event_id" must be a string', 'event_id', 'invalid_type')
  if (id.length > limits.idLength)
    throw invalid(`"event_id" must be at most ${limits.idLength} characters long`, 'event_id', 'invalid_value')
  return id
}
