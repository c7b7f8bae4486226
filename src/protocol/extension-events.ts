/**
 * Events of other protocols that UAMP events lack. Only clients that announced them (`client_capabilities.extensions.uamp.events`)
 * get them, and transports that map them.
 */
import * as z from 'zod/mini'
import { base as clientBase } from './client-events.ts'
import { Slot } from './json.ts'
import { Message } from './message.ts'
import { inResponse } from './server-events.ts'

/** RFC 6902. */
export const PatchOperation = z.object({
  op: z.enum(['add', 'remove', 'replace', 'move', 'copy', 'test']),
  path: z.string(),
  from: z.optional(z.string()),
  value: z.optional(z.unknown()),
})
const patch = z.array(PatchOperation)
const text = z.optional(z.string())
const activity = { activity_id: z.string(), activity_type: z.string() }

export const StateSnapshot = inResponse('x.state.snapshot', { snapshot: z.unknown() })
export const StateDelta = inResponse('x.state.delta', { delta: patch })
export const MessagesSnapshot = inResponse('x.messages.snapshot', { messages: z.array(Message) })
export const ActivitySnapshot = inResponse('x.activity.snapshot', { ...activity, content: Slot, replace: z.optional(z.boolean()) })
export const ActivityDelta = inResponse('x.activity.delta', { ...activity, patch })
export const StepStarted = inResponse('x.step.started', { name: z.string() })
export const StepFinished = inResponse('x.step.finished', { name: z.string() })
export const ApprovalRequest = inResponse('x.approval.request', {
  approval_id: z.string(),
  message: z.string(),
  tool_call: z.optional(z.object({ id: z.string(), name: z.string(), arguments: z.string() })),
  options: z.optional(z.array(z.object({ id: z.string(), label: z.string(), kind: text }))),
  extensions: z.optional(Slot),
})
export const ApprovalResponse = z.object({
  ...clientBase,
  type: z.literal('x.approval.response'),
  approval_id: z.string(),
  approved: z.boolean(),
  option: text,
  reason: text,
  extensions: z.optional(Slot),
})
export const Plan = inResponse('x.plan', {
  entries: z.array(z.object({ content: z.string(), status: z.enum(['pending', 'in_progress', 'completed']), priority: text })),
})
export const SubagentStarted = inResponse('x.subagent.started', {
  subagent_id: z.string(),
  name: z.string(),
  parent_id: text,
  call_id: text,
})
export const SubagentFinished = inResponse('x.subagent.finished', {
  subagent_id: z.string(),
  status: z.enum(['completed', 'cancelled', 'failed']),
  result: z.optional(z.unknown()),
})
export const ReasoningEncrypted = inResponse('x.reasoning.encrypted', { value: z.string(), entity_id: text, subtype: text })
export const Custom = inResponse('x.custom', { name: z.string(), value: z.unknown() })
export const Raw = inResponse('x.raw', { event: z.unknown(), source: text })
/** The named client events are durable. */
export const Ack = inResponse('x.ack', { event_ids: z.array(z.string()) })
