import { Entry, Stamp } from './entry.ts'
import { decodeGroup, encodeSlice } from './log-format.ts'
import { Output } from './output.ts'
import { Slice } from './slice.ts'
import type { Records, TurnRecord } from './records.ts'
import type { ContentItem } from '../protocol/content.ts'

/**
 * Closes the turns that a crash left open, each with `interrupted`: in the log, so that a reader who comes back is told, and
 * in the conversation, with what had been said by then. Returns how many there were.
 */
export async function closeInterrupted(records: Records, gap: number): Promise<number> {
  const turns = await records.openTurns()
  for (const turn of turns) await closeTurn(records, turn, gap)
  return turns.length
}

async function closeTurn(records: Records, turn: TurnRecord, gap: number): Promise<void> {
  const { tenant, session } = turn
  const stream = records.logStream(tenant, session)
  const output = new Output()
  for (const item of turn.output) if (item.type === 'tool_result') output.addResult(item.tool_result)
  const last = await records.store.last(stream)
  for await (const group of records.store.read(stream, { after: turn.after })) {
    for (const { stamp, draft } of decodeGroup(session, group, turn.after)) {
      if (stamp.responseId === turn.id) output.add(draft)
    }
  }
  const error = { code: 'interrupted', message: 'The server was stopped while it answered' }
  const items = [...output.items(), ...(await unusedAnswers(records, turn, output.items()))]
  const stamp = new Stamp(session, turn.id)
  const entry = new Entry(stamp, last + gap, { type: 'response.error', error })
  await records.store.batch(
    [
      {
        op: 'append',
        stream,
        group: { first: entry.seq, last: entry.seq, text: encodeSlice(new Slice(entry.seq, [entry], [stamp])) },
        expected: last,
      },
      records.setTurn({ ...turn, output: items, status: 'failed', error }),
    ],
    { sync: true },
  )
}

/** Tool results that were acknowledged, but that the agent had not made anything of yet. */
async function unusedAnswers(records: Records, turn: TurnRecord, output: readonly ContentItem[]): Promise<ContentItem[]> {
  const { events } = await records.inputs(turn.tenant, turn.session, turn.from)
  const known = new Set(output.flatMap((item) => (item.type === 'tool_result' ? [item.tool_result.call_id] : [])))
  return events.flatMap((event): ContentItem[] => {
    if (event.type !== 'tool.result' || known.has(event.call_id)) return []
    const { call_id, result, is_error, content_items } = event
    return [
      { type: 'tool_result', tool_result: { call_id, result, ...(is_error && { is_error }), ...(content_items && { content_items }) } },
    ]
  })
}
