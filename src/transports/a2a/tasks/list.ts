import { parseJson } from '../../../protocol/json.ts'
import type { Hold } from '../../../core/ports/session.ts'
import type { KnownCall } from '../../../core/ports/transport.ts'
import { base64, fromBase64 } from '../../../protocol/base64.ts'
import { a2aError } from '../errors.ts'
import { weigh } from '../../../core/basics/weight.ts'
import type { ListRequest, Task, TaskPage } from '../model.ts'
import { agentOf } from '../request.ts'
import type { Shared, TaskRecord } from './records.ts'

/** The caller's tasks, the newest status first. A page costs the same, however many tasks there are. */
export async function list(shared: Shared, call: KnownCall, request: ListRequest): Promise<TaskPage> {
  const { records, views, host } = shared
  const { contextId, state, pageSize, pageToken, statusAfter, historyLength, includeArtifacts } = request
  if (contextId !== undefined && !contextId.isWellFormed()) return { tasks: [], nextPageToken: '', pageSize, totalSize: 0 }
  const filter = { agent: agentOf(host, call).name, contextId, state }
  const after = pageToken === undefined || pageToken === '' ? undefined : cursorIn(pageToken)
  const [page, totalSize] = await Promise.all([
    records.list(call.principal, filter, { limit: pageSize, ...(after !== undefined && { after }) }),
    records.count(call.principal, filter, statusAfter),
  ])
  const isNew = ({ updatedAt }: TaskRecord): boolean => statusAfter === undefined || updatedAt >= statusAfter
  const shown = page.items.filter(isNew)
  let next = shown.length < page.items.length ? undefined : page.next
  if (next !== undefined && statusAfter !== undefined) {
    const [following] = (await records.list(call.principal, filter, { limit: 1, after: next })).items
    if (!following || !isNew(following)) next = undefined
  }
  const tasks = await counted(host.gateway.hold(call.principal, 0), shown, (record) =>
    views.stored(record, { historyLength, artifacts: includeArtifacts }),
  )
  return { tasks, nextPageToken: next === undefined ? '' : tokenOf(next), pageSize, totalSize }
}

/** One after the other: a page may be larger than what its reader may hold, and other requests have their turn in between. */
async function counted(hold: Hold, records: readonly TaskRecord[], show: (record: TaskRecord) => Promise<Task>): Promise<Task[]> {
  const tasks: Task[] = []
  let bytes = 0
  try {
    for (const record of records) {
      const task = await show(record)
      hold.grow((bytes += weigh(task)))
      tasks.push(task)
    }
    return tasks
  } finally {
    hold.close()
  }
}

/** The store's cursor, in letters that a URL need not quote. */
function tokenOf(cursor: string): string {
  return base64(new TextEncoder().encode(cursor)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

function cursorIn(token: string): string {
  try {
    const cursor = new TextDecoder('utf-8', { fatal: true }).decode(fromBase64(token.replaceAll('-', '+').replaceAll('_', '/')))
    const parts = parseJson(cursor) as unknown
    if (Array.isArray(parts) && parts.every((part) => typeof part === 'string' && part.isWellFormed())) return cursor
  } catch {}
  throw a2aError('INVALID_PARAMS', '"pageToken" is not of this list', { field: 'pageToken' })
}
