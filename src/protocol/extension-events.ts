/**
 * What other protocols have and UAMP events lack. Sent only to clients that announced them
 * (`client_capabilities.extensions.uamp.events`) or by transports that map them.
 */
import * as z from 'zod/mini'
import { base as clientBase } from './client-events.ts'
import { Slot } from './json.ts'
import { Message } from './message.ts'
import { base as serverBase } from './server-events.ts'

const base = { ...serverBase, response_id: z.optional(z.string()) }

/** RFC 6902. */
export const PatchOperation = z.object({
  op: z.enum(['add', 'remove', 'replace', 'move', 'copy', 'test']),
  path: z.string(),
  from: z.optional(z.string()),
  value: z.optional(z.unknown()),
})
const patch = z.array(PatchOperation)

export const StateSnapshot = z.object({ ...base, type: z.literal('x.state.snapshot'), snapshot: z.unknown() })
export const StateDelta = z.object({ ...base, type: z.literal('x.state.delta'), delta: patch })
export const MessagesSnapshot = z.object({ ...base, type: z.literal('x.messages.snapshot'), messages: z.array(Message) })
export const ActivitySnapshot = z.object({
  ...base,
  type: z.literal('x.activity.snapshot'),
  activity_id: z.string(),
  activity_type: z.string(),
  content: Slot,
  replace: z.optional(z.boolean()),
})
export const ActivityDelta = z.object({
  ...base,
  type: z.literal('x.activity.delta'),
  activity_id: z.string(),
  activity_type: z.string(),
  patch,
})
export const StepStarted = z.object({ ...base, type: z.literal('x.step.started'), name: z.string() })
export const StepFinished = z.object({ ...base, type: z.literal('x.step.finished'), name: z.string() })
export const ApprovalRequest = z.object({
  ...base,
  type: z.literal('x.approval.request'),
  approval_id: z.string(),
  message: z.string(),
  tool_call: z.optional(z.object({ id: z.string(), name: z.string(), arguments: z.string() })),
  options: z.optional(z.array(z.object({ id: z.string(), label: z.string(), kind: z.optional(z.string()) }))),
  extensions: z.optional(Slot),
})
export const ApprovalResponse = z.object({
  ...clientBase,
  type: z.literal('x.approval.response'),
  approval_id: z.string(),
  approved: z.boolean(),
  option: z.optional(z.string()),
  reason: z.optional(z.string()),
  extensions: z.optional(Slot),
})
export const Plan = z.object({
  ...base,
  type: z.literal('x.plan'),
  entries: z.array(
    z.object({ content: z.string(), status: z.enum(['pending', 'in_progress', 'completed']), priority: z.optional(z.string()) }),
  ),
})
export const SubagentStarted = z.object({
  ...base,
  type: z.literal('x.subagent.started'),
  subagent_id: z.string(),
  name: z.string(),
  parent_id: z.optional(z.string()),
  call_id: z.optional(z.string()),
})
export const SubagentFinished = z.object({
  ...base,
  type: z.literal('x.subagent.finished'),
  subagent_id: z.string(),
  status: z.enum(['completed', 'cancelled', 'failed']),
  result: z.optional(z.unknown()),
})
export const ReasoningEncrypted = z.object({
  ...base,
  type: z.literal('x.reasoning.encrypted'),
  value: z.string(),
  entity_id: z.optional(z.string()),
  subtype: z.optional(z.string()),
})
export const Custom = z.object({ ...base, type: z.literal('x.custom'), name: z.string(), value: z.unknown() })
export const Raw = z.object({ ...base, type: z.literal('x.raw'), event: z.unknown(), source: z.optional(z.string()) })
/** The named client events are durable. */
export const Ack = z.object({ ...base, type: z.literal('x.ack'), event_ids: z.array(z.string()) })
