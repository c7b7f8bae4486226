import { Entry, isPlainText, Slice, Stamp } from '../log/entry.ts'
import { lastNumber } from './epoch.ts'
import { decodeGroup, encodeSlice } from '../log/log-store.ts'
import { Output } from '../reading/output.ts'
import type { RecoverKeeper, TurnKeeper } from '../ports/keeper.ts'
import type { Records, TurnRecord } from './records.ts'
import { responseCreated } from '../engine/run.ts'
import type { ContentItem } from '../../protocol/content.ts'
import type { Draft } from '../../protocol/events.ts'

export interface RecoveryOptions {
  readonly epoch: number
  /** When the events that close the responses happen. */
  readonly time: number
  readonly keepers: ReadonlyMap<string, RecoverKeeper>
}

/**
 * Closes the responses that a crash left open with `interrupted`: in the log, so that a returning reader is told, and in the
 * conversation, with what was said by then. Returns how many there were.
 */
export async function closeInterrupted(records: Records, { epoch, time, keepers }: RecoveryOptions): Promise<number> {
  const turns = await records.openTurns()
  for (const turn of turns) {
    const recover = turn.keeper === undefined ? undefined : keepers.get(turn.keeper)
    // A response that cannot be closed must keep neither the others open nor the server from starting.
    const keeper = await recover?.(turn).catch(() => undefined)
    await closeTurn(records, turn, { epoch, time, keeper })
      .catch(() => closeTurn(records, turn, { epoch, time, keeper, isBare: true }))
      .catch(() => closeTurn(records, turn, { epoch, time, keeper: undefined, isBare: true }))
  }
  return turns.length
}

interface Closing extends Pick<RecoveryOptions, 'epoch' | 'time'> {
  readonly keeper: TurnKeeper | undefined
  /** Close the response without its output, which may be too large or damaged. */
  readonly isBare?: boolean
}

async function closeTurn(records: Records, turn: TurnRecord, { epoch, time, keeper, isBare = false }: Closing): Promise<void> {
  const { tenant, session } = turn
  const stream = records.logStream(tenant, session)
  const output = new Output()
  if (!isBare) for (const item of turn.output) if (item.type === 'tool_result') output.addResult(item.tool_result)
  const [position, found] = await Promise.all([records.store.last(stream), records.session(tenant, session)])
  let [isAnnounced, spoke] = [false, false]
  // An open response has no end in the log, and the outputs in the ends of others are not needed.
  const log = { sessionId: session, outputOf: async () => [] }
  for await (const group of records.store.read(stream, { after: turn.after })) {
    for (const { stamp, draft } of await decodeGroup(log, group, turn.after)) {
      if (stamp.responseId !== turn.id) continue
      isAnnounced ||= draft.type === 'response.created'
      if (isBare) continue
      output.add(draft)
      const isText = draft.type === 'response.delta' && isPlainText(draft.delta)
      if (!isText || !spoke) keeper?.see?.(draft)
      spoke ||= isText
    }
  }
  const error = { code: 'interrupted', message: 'The server was stopped while it answered' }
  const items = isBare ? [] : [...output.items(), ...(await unusedAnswers(records, turn, output.items()))]
  // A client that got only the acknowledgement recognizes its response by the request that `response.created` names.
  const created = responseCreated(found?.session.duplex ? turn.eventIds.at(-1) : undefined)
  const end = { type: 'response.error', error } as const
  const drafts: Draft[] = [...(isAnnounced ? [] : [created]), end]
  const stamp = new Stamp(session, turn.id, { time })
  const first = lastNumber(position, found?.head ?? {}, epoch) + 1
  const entries = drafts.map((draft, index) => new Entry(stamp, first + index, draft))
  const text = encodeSlice(
    new Slice(
      first,
      entries,
      entries.map(() => stamp),
    ),
  )
  await records.store.batch(
    [
      { op: 'append', stream, group: { first, last: first + entries.length - 1, text }, expected: position },
      records.setTurn({ ...turn, output: items, status: 'failed', error }),
      ...(keeper?.closed(turn, end, false) ?? []),
    ],
    { sync: true },
  )
}

/** Tool results that the session acknowledged, but whose use by the agent is not in the log. */
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
