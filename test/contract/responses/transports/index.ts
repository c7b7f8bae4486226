import type { Transport } from '../transport.ts'
import { a2a03, a2a1 } from './a2a.ts'
import { acpHttp, acpWebSocket } from './acp.ts'
import { agUi } from './ag-ui.ts'
import { completions } from './completions.ts'
import { eventsSse, eventsWebSocket } from './events.ts'
import { omnia } from './omnia.ts'
import { realtime } from './realtime.ts'
import { responses, responsesSocket } from './responses.ts'

/** All that a server speaks. */
export const TRANSPORTS: readonly Transport[] = [
  eventsWebSocket,
  eventsSse,
  completions,
  responses,
  responsesSocket,
  realtime,
  a2a1,
  a2a03,
  acpWebSocket,
  acpHttp,
  agUi,
  omnia,
]
