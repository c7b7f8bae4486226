import * as z from 'zod/mini'
import type { Turn } from '../../core/ports/agent.ts'
import { UampError } from '../../protocol/errors.ts'
import { ApprovalRequest } from '../../protocol/extension-events.ts'
import { isRecord } from '../../protocol/json.ts'
import type { Payment } from '../../protocol/payment.ts'
import { PaymentRequired, ToolCallEvent } from '../../protocol/server-events.ts'
import type { Message, Outgoing, Struct } from './model.ts'

const Call = z.pick(ToolCallEvent, { type: true, call_id: true, name: true, arguments: true })
const Approval = z.pick(ApprovalRequest, { type: true, approval_id: true, message: true, tool_call: true, options: true })
const Pay = z.pick(PaymentRequired, { type: true, requirements: true, extra: true })
/** What another uamp server asks by data parts of a task that waits for input. */
const Question = z.discriminatedUnion('type', [Call, Approval, Pay])
type Question = z.infer<typeof Question>

/** What the A2A extension for x402 calls its metadata. */
const X402 = { status: 'x402.payment.status', required: 'x402.payment.required', payload: 'x402.payment.payload' }

/** Those that our client can be asked as what they are. Another question is text, and its answer the next message. */
export function questionsIn(message: Message | undefined): readonly Question[] {
  if (!message) return []
  const asked = message.parts.flatMap(({ data }) => {
    const { success, data: question } = z.safeParse(Question, data)
    return success ? [question] : []
  })
  return asked.length > 0 ? asked : x402In(message.metadata)
}

type Answer = Pick<Outgoing, 'parts' | 'metadata'>

/** The answers, as the message that the task goes on with. All are asked at once. */
export async function answersTo(questions: readonly Question[], turn: Turn): Promise<Answer> {
  const answers = await Promise.all(questions.map((question) => answerTo(question, turn)))
  const metadata = Object.assign({}, ...answers.map((answer) => answer.metadata)) as Struct
  return { parts: answers.flatMap(({ parts }) => parts), ...(Object.keys(metadata).length > 0 && { metadata }) }
}

async function answerTo(question: Question, turn: Turn): Promise<Answer> {
  switch (question.type) {
    case 'tool.call':
      return { parts: [{ data: await resultOf(question, turn) }] }
    case 'x.approval.request':
      return { parts: [{ data: await decisionOn(question, turn) }] }
    case 'payment.required': {
      const { requirements, extra } = question
      const { payment } = await turn.ask('payment.required', { requirements, ...(extra && { extra }) })
      if (!isRecord(extra?.['x402'])) return { parts: [{ data: { type: 'payment.submit', payment } }] }
      const metadata = { [X402.status]: 'payment-submitted', [X402.payload]: payloadOf(payment, extra['x402']) }
      return { parts: [{ text: 'Payment submitted' }], metadata }
    }
  }
}

/** Where the turn is run again the task is another one, and asks the same in the same order: so the answers are found by number. */
async function resultOf({ call_id, name, arguments: args }: z.infer<typeof Call>, turn: Turn): Promise<object> {
  try {
    const { result, is_error, content_items } = await turn.ask('tool.call', { call_id, name, arguments: args })
    return { type: 'tool.result', call_id, result, ...(is_error && { is_error }), ...(content_items && { content_items }) }
  } catch (thrown) {
    turn.signal.throwIfAborted()
    return { type: 'tool.result', call_id, result: JSON.stringify({ error: UampError.from(thrown).toBody() }), is_error: true }
  }
}

async function decisionOn({ approval_id, message, tool_call, options }: z.infer<typeof Approval>, turn: Turn): Promise<object> {
  const question = { approval_id, message, ...(tool_call && { tool_call }), ...(options && { options }) }
  try {
    const { approved, option, reason } = await turn.ask('x.approval.request', question)
    const how = { ...(option !== undefined && { option }), ...(reason !== undefined && { reason }) }
    return { type: 'x.approval.response', approval_id, approved, ...how }
  } catch (thrown) {
    turn.signal.throwIfAborted()
    return { type: 'x.approval.response', approval_id, approved: false, reason: UampError.from(thrown).code }
  }
}

function x402In(metadata: Struct | undefined): Question[] {
  const required = metadata?.[X402.required]
  if (!isRecord(required)) return []
  const accepts = Array.isArray(required['accepts']) ? required['accepts'].filter(isRecord) : []
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
  const schemes = accepts.map(({ scheme, network, payTo, maxAmountRequired }) => ({
    scheme: text(scheme) ?? 'exact',
    ...(text(network) !== undefined && { network: text(network) }),
    ...(text(payTo) !== undefined && { address: text(payTo) }),
    ...(text(maxAmountRequired) !== undefined && { max_amount: text(maxAmountRequired) }),
  }))
  const [first] = accepts
  const reason = text(first?.['description'])
  const requirements = {
    amount: text(first?.['maxAmountRequired']) ?? text(first?.['amount']) ?? '0',
    currency: text(first?.['asset']) ?? 'USD',
    schemes,
    ...(reason !== undefined && { reason }),
  }
  return [{ type: 'payment.required', requirements, extra: { x402: required } }]
}

/** What pays: as it is signed, where the client gave that, else its token. */
function payloadOf({ scheme, network, token, proof }: Payment, { x402Version = 1 }: Struct): unknown {
  if (proof !== undefined) return proof
  return { x402Version, scheme, ...(network !== undefined && { network }), ...(token !== undefined && { payload: { token } }) }
}
