import type { Driver } from '../driver.ts'
import { a2a03, a2a1, a2a1Rest } from './a2a.ts'
import { acpHttp, acpStdio, acpWebSocket } from './acp.ts'
import { agUi } from './ag-ui.ts'
import { clientSse, clientWebSocket } from './client.ts'
import { completions } from './completions.ts'
import { eventsHttp, eventsWebSocket } from './events.ts'
import { omnia } from './omnia.ts'
import { realtimeSound, realtimeText } from './realtime.ts'
import { responses, responsesWebSocket } from './responses.ts'

/** All that a server speaks. */
export const DRIVERS: readonly Driver[] = [
  eventsWebSocket,
  eventsHttp,
  completions,
  responses,
  responsesWebSocket,
  realtimeText,
  realtimeSound,
  a2a1,
  a2a1Rest,
  a2a03,
  acpWebSocket,
  acpHttp,
  acpStdio,
  agUi,
  omnia,
  clientWebSocket,
  clientSse,
]

export function driverOf(name: string): Driver {
  const driver = DRIVERS.find((each) => each.name === name)
  if (!driver) throw new Error(`There is no transport ${name}`)
  return driver
}
