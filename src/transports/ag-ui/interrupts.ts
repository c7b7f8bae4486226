import type { Questions } from '../../core/ports/agent.ts'
import type { Waiting } from '../../core/ports/session.ts'
import { matchAnswers } from '../../core/reading/answers.ts'
import type { Question } from '../../core/reading/response-fold.ts'
import { UampError } from '../../protocol/errors.ts'
import type { EventOf } from '../../protocol/events.ts'
import { isRecord, type Slot } from '../../protocol/json.ts'
import { DECLINED, type Payment } from '../../protocol/payment.ts'
import { invalid, parseValue } from '../../wire/parse.ts'
import { paymentRefusal } from '../../protocol/payment-refusal.ts'
import { paymentId } from './ids.ts'
import { said } from './messages.ts'
import { Resolved, type ResumeEntry, type WireMessage } from './schema.ts'

type Given = Questions[keyof Questions]

const APPROVAL = {
  type: 'object',
  properties: { approved: { type: 'boolean' }, option: { type: 'string' }, reason: { type: 'string' } },
  required: ['approved'],
}
const PAYMENT = { type: 'object', properties: { payment_token: { type: 'string' } }, required: ['payment_token'] }

/** The interrupt for a question that ends a run. */
export function interruptOf(question: Question, response: string): { readonly id: string } {
  switch (question.type) {
    case 'tool.call':
      return { id: question.call_id }
    case 'x.approval.request': {
      const { approval_id: id, message, tool_call, options } = question
      const about = { ...(options && { options }), ...(tool_call && { tool_call }) }
      const call = tool_call && { toolCallId: tool_call.id }
      const reason = tool_call ? 'tool_call' : 'confirmation'
      const metadata = Object.keys(about).length > 0 && { metadata: { uamp: about } }
      return { id, reason, message, ...call, ...(formOf(question) ?? { responseSchema: APPROVAL, ...metadata }) } as { id: string }
    }
    case 'payment.required': {
      const { message, details } = paymentRefusal(question)
      const uamp = { requirements: question.requirements, accepts: details?.['accepts'] }
      const ask = { reason: 'uamp:payment_required', message, responseSchema: PAYMENT, metadata: { uamp } }
      return { id: paymentId(response), ...ask } as { id: string }
    }
  }
}

/** The original interrupt, if a remote agent that speaks AG-UI asked the question: the answer then takes its form. */
export function formOf({ extensions }: Pick<EventOf<'x.approval.request'>, 'extensions'>): Slot | undefined {
  const form = extensions?.['ag-ui']
  return isRecord(form) ? form : undefined
}

export interface Answering {
  readonly resume: readonly ResumeEntry[]
  readonly messages: readonly WireMessage[]
  readonly payment: Payment | undefined
  readonly newId: () => string
}

/**
 * The answers of a run to the questions that its thread waits for; undefined if the run says something else instead. Throws if it
 * answers only some of them, or leaves an approval undecided.
 */
export function answersTo({ response, questions }: Waiting, answering: Answering): Given[] | undefined {
  const { resume, payment, newId } = answering
  const ids = new Set(questions.map(({ id, type }) => (type === 'payment.required' ? paymentId(response) : id)))
  const unknown = resume.find(({ interruptId }) => !ids.has(interruptId))
  if (unknown) throw noInterrupt(unknown)
  if (new Set(resume.map(({ interruptId }) => interruptId)).size < resume.length) {
    throw invalid('"resume" answers one interrupt twice', 'resume', 'duplicate_interrupt')
  }
  const answers = questions.flatMap(({ id, type, extensions }): Given | readonly [] => {
    if (type === 'tool.call') return resultIn(answering, id) ?? []
    const entry = resume.find(({ interruptId }) => interruptId === (type === 'payment.required' ? paymentId(response) : id))
    if (entry && formOf({ extensions })) return formed(entry, newId)
    if (entry) return resumed(entry, type, newId)
    return type === 'payment.required' && payment ? { type: 'payment.submit', event_id: newId(), payment } : []
  })
  const { missing } = matchAnswers(questions, answers)
  if (missing.length === 0) return answers
  const undecided = missing.find(({ type }) => type === 'x.approval.request')
  if (undecided) {
    throw new UampError('conflict', `This thread waits for "${undecided.id}": send "resume" with it, also to cancel it`, {
      details: { code: 'interrupt_pending', interrupts: [...ids] },
    })
  }
  if (missing.length === questions.length) return undefined
  throw invalid(`"messages" has no result for the call "${missing[0]?.id}"`, 'messages', 'missing_tool_result')
}

export function noInterrupt({ interruptId }: ResumeEntry): UampError {
  return invalid(`Nothing waits for "${interruptId}" on this thread`, 'resume', 'unknown_interrupt')
}

/** An entry passed on as it is: the remote agent that asked understands it. */
export function formed({ interruptId, status, payload }: ResumeEntry, newId: () => string): Given {
  const answer = { type: 'x.approval.response', event_id: newId(), approval_id: interruptId } as const
  if (status === 'cancelled') return { ...answer, approved: false, reason: 'cancelled' }
  const said = isRecord(payload) ? payload['approved'] : payload
  return { ...answer, approved: said !== false, extensions: { 'ag-ui': { payload } } }
}

/** An entry turned into the answer to a question of this type. */
export function resumed({ interruptId, status, payload }: ResumeEntry, type: keyof Questions, newId: () => string): Given {
  const event_id = newId()
  if (type === 'tool.call') return { type: 'tool.result', event_id, call_id: interruptId, ...outcome(status, payload) }
  if (type === 'payment.required') {
    if (status === 'cancelled') return { type: 'payment.submit', event_id, payment: DECLINED }
    const token = isRecord(payload) ? payload['payment_token'] : undefined
    if (typeof token !== 'string') {
      throw new UampError('payment_required', 'The payload must have a "payment_token"', { details: { param: 'resume' } })
    }
    return { type: 'payment.submit', event_id, payment: { scheme: 'token', token } }
  }
  const answer = { type: 'x.approval.response', event_id, approval_id: interruptId } as const
  if (status === 'cancelled') return { ...answer, approved: false, reason: 'cancelled' }
  const { payload: decision } = parseValue(Resolved, { payload })
  if (typeof decision === 'boolean') return { ...answer, approved: decision }
  const { approved, option, reason } = decision
  return { ...answer, approved, ...(option != null && { option }), ...(reason != null && { reason }) }
}

function outcome(status: ResumeEntry['status'], payload: unknown): { result: string; is_error?: boolean } {
  if (status === 'cancelled') return { result: 'The user cancelled it', is_error: true }
  return { result: typeof payload === 'string' ? payload : JSON.stringify(payload ?? null) }
}

function resultIn({ messages, resume, newId }: Answering, callId: string): Given | undefined {
  const entry = resume.find(({ interruptId }) => interruptId === callId)
  if (entry) return resumed(entry, 'tool.call', newId)
  const found = messages.findLast((message) => message.role === 'tool' && message.toolCallId === callId)
  return found?.role === 'tool' ? toolResult(found, newId) : undefined
}

/** The result of a tool that the page ran. */
export function toolResult(message: Extract<WireMessage, { role: 'tool' }>, newId: () => string): Given {
  const { content = '', content_items, is_error } = said(message, 'messages')
  const more = { ...(is_error && { is_error }), ...(content_items && { content_items }) }
  return { type: 'tool.result', event_id: newId(), call_id: message.toolCallId, result: content, ...more }
}
