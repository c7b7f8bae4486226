import * as z from 'zod/mini'
import type { ClientAnswers } from '../../upstream/client-answers.ts'
import { ApprovalRequest } from '../../protocol/extension-events.ts'
import { isRecord } from '../../protocol/json.ts'
import type { Payment } from '../../protocol/payment.ts'
import { PaymentRequired, ToolCallEvent } from '../../protocol/server-events.ts'
import { X402 } from '../../wire/a2a/extensions.ts'
import { x402Demand } from '../../wire/demand.ts'
import type { Message, Outgoing, Struct } from './model.ts'

const Call = z.pick(ToolCallEvent, { type: true, call_id: true, name: true, arguments: true })
const Approval = z.pick(ApprovalRequest, { type: true, approval_id: true, message: true, tool_call: true, options: true })
const Pay = z.pick(PaymentRequired, { type: true, requirements: true, extra: true })
/** A question that another uamp server puts into a data part of a task that waits for input. */
const Question = z.discriminatedUnion('type', [Call, Approval, Pay])
type Question = z.infer<typeof Question>

/** The questions that our client can be asked as events. Any other question is text, and the next message answers it. */
export function questionsIn(message: Message | undefined): readonly Question[] {
  if (!message) return []
  const asked = message.parts.flatMap(({ data }) => {
    const { success, data: question } = z.safeParse(Question, data)
    return success ? [question] : []
  })
  return asked.length > 0 ? asked : x402In(message.metadata)
}

type Answer = Pick<Outgoing, 'parts' | 'metadata'>

/** Asks our client all questions at once, and makes of the answers the message that the task goes on with. */
export async function answersTo(questions: readonly Question[], client: ClientAnswers): Promise<Answer> {
  const answers = await Promise.all(questions.map((question) => answerTo(question, client)))
  const metadata = Object.assign({}, ...answers.map((answer) => answer.metadata)) as Struct
  return { parts: answers.flatMap(({ parts }) => parts), ...(Object.keys(metadata).length > 0 && { metadata }) }
}

async function answerTo(question: Question, client: ClientAnswers): Promise<Answer> {
  const answer = await client.to(question)
  const required = question.type === 'payment.required' ? question.extra?.['x402'] : undefined
  if (answer.type !== 'payment.submit' || !isRecord(required)) return { parts: [{ data: answer }] }
  const metadata = { [X402.status]: 'payment-submitted', [X402.payload]: payloadOf(answer.payment, required) }
  return { parts: [{ text: 'Payment submitted' }], metadata }
}

function x402In(metadata: Struct | undefined): Question[] {
  const required = metadata?.[X402.required]
  const demand = isRecord(required) ? x402Demand(required) : undefined
  return demand ? [{ type: 'payment.required', ...demand }] : []
}

/** The signed proof if the client gave one, else its token. */
function payloadOf({ scheme, network, token, proof }: Payment, { x402Version = 1 }: Struct): unknown {
  if (proof !== undefined) return proof
  return { x402Version, scheme, ...(network !== undefined && { network }), ...(token !== undefined && { payload: { token } }) }
}
