import jsonPatch from 'fast-json-patch'
import type { Session, StoredResponse } from '../../core/ports/session.ts'
import type { EventOf, ServerEvent } from '../../protocol/events.ts'
import { isRecord, uampIn } from '../../protocol/json.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'

/** The most characters of JSON that the kept state of a thread may have. A patch that makes more of it does not count. */
const STATE_LENGTH = 1024 * 1024

/** The state that a response began with. */
export function stateIn({ extensions }: SessionConfig): unknown {
  return uampIn(extensions)['state']
}

/** True for what a client sends that has no state of its own: official clients begin with an empty object. */
export function isNoState(state: unknown): boolean {
  return state == null || (isRecord(state) && Object.keys(state).length === 0)
}

/** The state of a thread after this response: what the response began with, and what its agent changed. */
export async function stateAfter(session: Session, { id, after, config }: StoredResponse): Promise<unknown> {
  let state = stateIn(config)
  let seen = after
  let isOver = false
  const { lastSeq } = session
  if (after >= lastSeq) return state
  const see = (event: ServerEvent, seq = seen): void => {
    seen = seq
    if (!('response_id' in event) || event.response_id !== id) return
    if (event.type === 'x.state.snapshot') state = event.snapshot
    else if (event.type === 'x.state.delta') state = patched(state, event.delta)
    else isOver ||= event.type === 'response.done' || event.type === 'response.cancelled' || event.type === 'response.error'
  }
  const reader = session.read({ after, extensions: 'all' })
  try {
    for await (const batch of reader) {
      batch.visit({ text: (_, seq = seen) => void (seen = seq), event: see })
      if (isOver || seen >= lastSeq) break
    }
  } finally {
    reader.close()
  }
  return state
}

/** As clients do it, a patch that does not fit leaves the state as it is. */
function patched(state: unknown, delta: EventOf<'x.state.delta'>['delta']): unknown {
  try {
    let document = structuredClone(state ?? {})
    for (const operation of delta) {
      document = jsonPatch.applyOperation(document, operation as never, true).newDocument
      // Copies can double it again and again, so each is measured.
      if (operation.op === 'copy' && isTooLong(document)) return state
    }
    return isTooLong(document) ? state : document
  } catch {
    return state
  }
}

function isTooLong(state: unknown): boolean {
  return (JSON.stringify(state)?.length ?? 0) > STATE_LENGTH
}
