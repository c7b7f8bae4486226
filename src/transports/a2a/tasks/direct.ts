import type { Principal } from '../../../core/ports/access.ts'
import type { Batch, Reader, Session } from '../../../core/ports/session.ts'
import { RESPONSE_ENDS } from '../../../core/reading/ends.ts'
import type { ClientEvent, ServerEvent } from '../../../protocol/events.ts'
import { isRecord } from '../../../protocol/json.ts'
import type { Message, Part, Struct } from '../model.ts'
import type { Shared } from './shared.ts'

/** What an agent calls the event by which it answers with a message instead of a task. */
const NAME = 'a2a.message'

/** Events that say nothing yet. */
const IDLE: ReadonlySet<string> = new Set(['session.created', 'capabilities', 'response.created', 'usage.delta', 'payment.accepted'])

interface Beginning {
  readonly session: Session
  readonly sent: readonly ClientEvent[]
  readonly after: number
}

interface Asked {
  readonly contextId: string
  readonly agent: string
  readonly principal: Principal
}

/**
 * For agents that may answer without a task: begins the response and waits for its first event. If that is a message it is the whole
 * answer, and the response is read to its end in the background. Undefined: it is a task.
 */
export async function directMessage(shared: Shared, { session, sent, after }: Beginning, asked: Asked): Promise<Message | undefined> {
  const reader = session.read({ after, extensions: 'all' })
  try {
    await Promise.all(sent.map((event) => session.send(event)))
    for await (const batch of unclosed(reader)) {
      const first = [...batch].find(({ type }) => !IDLE.has(type))
      if (!first) continue
      const message = messageOf(first.event, asked, shared.host.newId)
      if (!message) break
      void drain(shared, { session, reader: batch.has(RESPONSE_ENDS) ? undefined : reader }, asked)
      return message
    }
    reader.close()
    return undefined
  } catch (thrown) {
    reader.close()
    void session.release().catch(() => undefined)
    throw thrown
  }
}

/** The same reader is read on by somebody else: leaving the loop does not close it. */
function unclosed(reader: Reader): AsyncIterable<Batch> {
  const batches = reader[Symbol.asyncIterator]()
  return { [Symbol.asyncIterator]: () => ({ next: () => batches.next() }) }
}

/** The conversation of a context goes on from an answer that was no task, too. */
async function drain(
  { host, records }: Shared,
  { session, reader }: { readonly session: Session; readonly reader: Reader | undefined },
  { principal, agent, contextId }: Asked,
): Promise<void> {
  try {
    if (reader) for await (const batch of reader) if (batch.has(RESPONSE_ENDS)) break
    const context = { tenant: principal.tenant, owner: principal.id, agent, contextId }
    if (session.turn !== null) await records.store.batch([records.setContext(context, session.turn)])
    await session.release()
  } catch (error) {
    host.log('error', 'An answer was not brought to its end', { session: session.id, error })
  }
}

function messageOf(event: ServerEvent, { contextId }: Asked, newId: () => string): Message | undefined {
  if (event.type !== 'x.custom' || event.name !== NAME) return undefined
  const { value } = event
  if (typeof value === 'string') return { messageId: newId(), role: 'ROLE_AGENT', contextId, parts: [{ text: value }] }
  if (!isRecord(value) || !Array.isArray(value['parts'])) return undefined
  const { parts, metadata, extensions } = value
  return {
    messageId: newId(),
    role: 'ROLE_AGENT',
    contextId,
    parts: parts as Part[],
    ...(isRecord(metadata) && { metadata: metadata as Struct }),
    ...(Array.isArray(extensions) && { extensions: extensions as string[] }),
  }
}
