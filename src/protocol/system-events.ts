/** UAMP events §11: for the parts of an agent, never sent to a client. */
import * as z from 'zod/mini'
import { base } from './client-events.ts'
import { ErrorBody } from './server-events.ts'

const SystemError = z.object({ ...base, type: z.literal('system.error'), error: ErrorBody })
const SystemStop = z.object({ ...base, type: z.literal('system.stop'), reason: z.optional(z.string()) })
const SystemCancel = z.object({ ...base, type: z.literal('system.cancel'), reason: z.optional(z.string()) })
const SystemPing = z.object({ ...base, type: z.literal('system.ping') })
const SystemPong = z.object({ ...base, type: z.literal('system.pong') })
const SystemUnroutable = z.object({ ...base, type: z.literal('system.unroutable'), original_event: z.unknown() })

export const SystemEvent = z.discriminatedUnion('type', [SystemError, SystemStop, SystemCancel, SystemPing, SystemPong, SystemUnroutable])
export type SystemEvent = z.infer<typeof SystemEvent>
