import { isEnd } from '../support/talk.ts'
import type { Heard, Wire } from '../support/wire.ts'

const STAMPS = new Set(['event_id', 'timestamp', 'session_id', 'response_id', 'seq', 'content_id', 'request'])
const IDS = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g

/** Events without what is new in every response, so that two of them can be compared. */
export function plain(events: readonly Heard[]): unknown[] {
  return events
    .filter(({ type }) => type !== 'capabilities')
    .map(
      (event) =>
        JSON.parse(
          JSON.stringify(event, (key, value: unknown) => (STAMPS.has(key) ? undefined : value)).replaceAll(IDS, 'an-id'),
        ) as unknown,
    )
}

/** Says something without waiting for the answer, of which `end` gives the events: in between its questions can be answered. */
export async function begin(wire: Wire, text: string): Promise<{ end(): Promise<Heard[]> }> {
  const from = wire.heard.length
  await wire.send({ type: 'input.text', text })
  await wire.send({ type: 'response.create' })
  return {
    async end() {
      await wire.next(isEnd)
      return wire.heard.slice(from).filter((event) => event['response_id'] !== undefined)
    },
  }
}
