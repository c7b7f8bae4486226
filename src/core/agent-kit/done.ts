import type { Draft } from '../../protocol/events.ts'
import type { Slot } from '../../protocol/json.ts'
import type { Usage } from '../../protocol/usage.ts'

export interface Ending {
  /** Stop reason; absent when the answer is complete. */
  readonly stop?: unknown
  readonly usage?: Usage | undefined
  readonly signature?: string | undefined
  readonly extensions?: Slot | undefined
}

/** The end of a response. Its `output` is empty, because the session fills in what was said. */
export function done({ stop, usage, signature, extensions }: Ending = {}): Draft {
  const added = { ...(stop !== undefined && { uamp: { stop_reason: stop } }), ...extensions }
  return {
    type: 'response.done',
    response: {
      id: '',
      status: 'completed',
      output: [],
      ...(usage && { usage }),
      ...(Object.keys(added).length > 0 && { extensions: added }),
    },
    ...(signature !== undefined && { signature }),
  }
}
