import * as z from 'zod/mini'
import type { ClientAnswers } from '../../upstream/client-answers.ts'
import type { Payer } from '../../upstream/payer.ts'
import type { Turn } from '../../core/ports/agent.ts'
import type { ToolCall } from '../../protocol/content.ts'
import { FIRST_EXPLAINED } from '../../protocol/explain.ts'
import { ApprovalRequest } from '../../protocol/extension-events.ts'
import { uampIn, fieldsOf, isRecord, type Slot } from '../../protocol/json.ts'
import { PaymentRequirements } from '../../protocol/payment.ts'
import { paymentText } from '../../wire/demand.ts'

const text = z.nullish(z.string())
export const Interrupt = z.object({
  id: text,
  reason: text,
  message: text,
  toolCallId: text,
  responseSchema: z.optional(z.unknown()),
  expiresAt: text,
  metadata: z.optional(z.unknown()),
})
export type Interrupt = z.infer<typeof Interrupt>

export type ResumeEntry = { readonly interruptId: string; readonly status: 'resolved' | 'cancelled'; readonly payload?: unknown }

/** Whether our client speaks AG-UI too: it then gets the interrupt itself, and may answer with any payload. */
export function isAgUi({ config }: Turn): boolean {
  return config.extensions?.['ag-ui'] !== undefined
}

/** Whether yes or no cannot answer the interrupt: its message is told as text, and the user's next message is the answer. */
export function isOpenQuestion({ reason }: Interrupt): boolean {
  return reason === 'input_required'
}

export interface Resuming {
  readonly turn: Turn
  readonly client: ClientAnswers
  /** The calls of the run, by id. */
  readonly calls: ReadonlyMap<string, ToolCall>
  readonly payer: Payer
}

/** Puts an interrupt to our client, and returns its answer for the next run. */
export async function resumed(interrupt: Interrupt, { turn, client, calls, payer }: Resuming): Promise<ResumeEntry> {
  const { id, metadata, reason, toolCallId, responseSchema } = interrupt
  const interruptId = id ?? ''
  const uamp = uampIn(fieldsOf(metadata))
  const { data: requirements } = z.safeParse(PaymentRequirements, uamp['requirements'], FIRST_EXPLAINED)
  if (requirements) {
    const payment = await payer.pay({ requirements, extra: extraIn(uamp['extra']) })
    return { interruptId, status: 'resolved', payload: { payment_token: paymentText(payment), payment } }
  }
  const tool_call = calls.get(toolCallId ?? '')
  const { data: options } = z.safeParse(ApprovalRequest.shape.options, uamp['options'], FIRST_EXPLAINED)
  const about = { ...(tool_call && { tool_call: { ...tool_call } }), ...(options && { options }) }
  const message = interrupt.message ?? reason ?? 'May I go on?'
  const decided = await client.decision({ message, ...about, extensions: { 'ag-ui': own(interrupt) } }).catch(() => undefined)
  turn.signal.throwIfAborted()
  if (!decided || (!decided.approved && (decided.reason === 'approval_unavailable' || decided.reason === 'cancelled'))) {
    return { interruptId, status: 'cancelled' }
  }
  const { extensions, ...decision } = decided
  const given = fieldsOf(extensions?.['ag-ui'])
  return { interruptId, status: 'resolved', payload: 'payload' in given ? given['payload'] : payloadFor(responseSchema, decision) }
}

function extraIn(extra: unknown): Slot | undefined {
  return isRecord(extra) ? extra : undefined
}

/** The fields of an interrupt that our question does not have. */
function own({ reason, responseSchema, expiresAt, metadata }: Interrupt): Slot {
  return Object.fromEntries(Object.entries({ reason, responseSchema, expiresAt, metadata }).filter(([, value]) => value != null))
}

/** The decision in the form of the interrupt's schema: a boolean, or an object with the decision in its boolean property. */
function payloadFor(schema: unknown, { approved, ...how }: { readonly approved: boolean }): unknown {
  const { type, properties } = fieldsOf(schema)
  if (type === 'boolean') return approved
  const fields = fieldsOf(properties)
  const flag = Object.keys(fields).find((name) => fieldsOf(fields[name])['type'] === 'boolean')
  return { [Object.hasOwn(fields, 'approved') ? 'approved' : (flag ?? 'approved')]: approved, ...how }
}
