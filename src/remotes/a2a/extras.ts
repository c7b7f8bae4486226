import * as z from 'zod/mini'
import { draftIn, type Draft } from '../../protocol/events.ts'
import { isRecord } from '../../protocol/json.ts'
import { Delta } from '../../protocol/server-events.ts'
import { EVENTS_EXTENSION } from '../../wire/a2a/extensions.ts'
import type { Message } from './model.ts'

/** The session's own to say, or told by the task itself. */
const OTHERS =
  /^(session\.|rate_limit$|response\.(created|done|error|cancelled)|pong$|x\.ack$|tool\.call$|x\.approval\.request$|payment\.required$)/

/** The events in a message of that extension; undefined for any other message. */
export function extrasIn({ extensions, parts }: Message): readonly Draft[] | undefined {
  if (!extensions.includes(EVENTS_EXTENSION)) return undefined
  return parts.flatMap(({ data }) => draftOf(data) ?? [])
}

function draftOf(data: unknown): Draft | undefined {
  if (!isRecord(data) || typeof data['type'] !== 'string' || OTHERS.test(data['type'])) return undefined
  const delta = z.safeParse(Delta, data)
  // A thought is an event of its own, and a delta only as a whole.
  if (delta.success) return { type: 'response.delta', delta: delta.data }
  const { timestamp: _, ...fields } = data
  return draftIn(fields)
}
