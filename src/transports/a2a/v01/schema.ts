/** What clients of A2A 0.1 send, and agents of UAMP transports with them. */
import * as z from 'zod/mini'
import { Id, maybe } from '../schema.ts'
import { HistoryLength, LoosePart, Metadata, Modes, partsOf, Push, Role } from '../v03/schema.ts'

/** Messages had no id of their own. */
export const Message = z.object({ role: Role, parts: partsOf(LoosePart), metadata: Metadata })
export type Message = z.output<typeof Message>

export const TaskSendParams = z.object({
  /** Chosen by the client. One who leaves it out gets one. */
  id: maybe(Id),
  sessionId: maybe(Id),
  message: Message,
  pushNotification: maybe(Push),
  historyLength: HistoryLength,
  acceptedOutputModes: Modes,
  metadata: Metadata,
})
export type TaskSendParams = z.output<typeof TaskSendParams>

export const SetPushParams = z.object({ id: Id, pushNotificationConfig: Push })
