import { expect } from 'vitest'
import type { Mirrored } from './agents.ts'
import type { Heard, Wire } from './wire.ts'

const ENDS = new Set(['response.done', 'response.error', 'response.cancelled'])
/** Not a refusal: that has no response. */
export const isEnd = (event: Heard): boolean => ENDS.has(event.type) && event['response_id'] !== undefined

/** Says something and waits for the end of the response. Returns its events, `response.created` first, the end last. */
export async function say(
  wire: Wire,
  text: string,
  { session, create = {} }: { session?: string; create?: object } = {},
): Promise<Heard[]> {
  const to = session === undefined ? {} : { session_id: session }
  const from = wire.heard.length
  expect(await wire.send({ type: 'input.text', text, ...to })).toBeUndefined()
  expect(await wire.send({ type: 'response.create', ...create, ...to })).toBeUndefined()
  const mine = (event: Heard): boolean => session === undefined || event['session_id'] === session
  await wire.next((event) => isEnd(event) && mine(event) && wire.heard.indexOf(event) >= from)
  return wire.heard.slice(from).filter((event) => mine(event) && event['response_id'] !== undefined)
}

/** The text of a response's deltas. */
export function textOf(events: readonly Heard[]): string {
  return events
    .map((event) => (event.type === 'response.delta' && event['delta'].type === 'text' ? (event['delta'].text as string) : ''))
    .join('')
}

/** What the `mirror` agent was given. */
export function mirrored(events: readonly Heard[]): Mirrored {
  return JSON.parse(textOf(events)) as Mirrored
}
