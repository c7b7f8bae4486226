import { FIRST_EXPLAINED } from '../../../protocol/explain.ts'
import type { Questions } from '../../../core/ports/agent.ts'
import type { Waiting } from '../../../core/ports/session.ts'
import { matchAnswers } from '../../../core/reading/answers.ts'
import { isRecord } from '../../../protocol/json.ts'
import { Payment } from '../../../protocol/payment.ts'
import { a2aError } from '../errors.ts'
import type { Message } from '../model.ts'
import { toItem } from './content.ts'
import { paymentIn } from './x402.ts'

export type Answer = Questions[keyof Questions]
type Question = Waiting['questions'][number]

const YES = /^\W*(y|yes|ok|okay|approve|approved|allow|accept|confirm|go ahead|sure)\b/i
const NO = /^\W*(n|no|deny|denied|reject|decline|refuse|cancel|stop|do not|don't)\b/i

interface Answering {
  readonly questions: readonly Question[]
  /** A payment that came with the request instead of the message. */
  readonly payment: Payment | undefined
  readonly newId: () => string
}

/** The answers in a message. Throws unless they answer every question of the task: without one of them it could not go on. */
export function answersIn(message: Message, { questions, payment, newId }: Answering): Answer[] {
  const given = [
    ...message.parts.flatMap(({ data }, index) => inData(data, { message, newId, field: `message.parts[${index}].data` })),
    ...paid(paymentIn(message) ?? payment, questions, newId),
  ]
  const [only] = questions
  const spoken = given.length === 0 && questions.length === 1 && only ? inWords(message, only, newId()) : undefined
  const answers = spoken ? [spoken] : given
  const { missing, notAsked } = matchAnswers(questions, answers)
  if (notAsked.length > 0) throw unanswered('The task does not wait for this answer', questions)
  if (missing.length > 0) throw unanswered(explain(missing), missing)
  return answers
}

function paid(payment: Payment | undefined, questions: readonly Question[], newId: () => string): Answer[] {
  if (!payment || !questions.some(({ type }) => type === 'payment.required')) return []
  return [{ type: 'payment.submit', event_id: newId(), payment }]
}

function inData(data: unknown, { message, newId, field }: { message: Message; newId: () => string; field: string }): Answer[] {
  if (!isRecord(data)) return []
  const wrong = (problem: string): Error => a2aError('INVALID_PARAMS', `"${field}" ${problem}`, { field })
  switch (data['type']) {
    case 'tool.result': {
      const { call_id, result, is_error } = data
      if (typeof call_id !== 'string' || result === undefined) throw wrong('must have "call_id" and "result"')
      const text = typeof result === 'string' ? result : JSON.stringify(result)
      return [{ type: 'tool.result', event_id: newId(), call_id, result: text, ...(is_error === true && { is_error }) }]
    }
    case 'x.approval.response': {
      const { approval_id, approved, option, reason } = data
      if (typeof approval_id !== 'string' || typeof approved !== 'boolean') throw wrong('must have "approval_id" and "approved"')
      const why = typeof reason === 'string' ? reason : plainText(message)
      return [
        {
          type: 'x.approval.response',
          event_id: newId(),
          approval_id,
          approved,
          ...(typeof option === 'string' && { option }),
          ...(why !== '' && { reason: why }),
        },
      ]
    }
    case 'payment.submit': {
      const payment = Payment.safeParse(data['payment'], FIRST_EXPLAINED)
      if (!payment.success) throw wrong('must have a "payment" with a "scheme"')
      return [{ type: 'payment.submit', event_id: newId(), payment: payment.data }]
    }
    default:
      return []
  }
}

/** People answer in words. For one question that is enough, unless it asks for money. */
function inWords(message: Message, { id, type }: Question, event_id: string): Answer | undefined {
  const text = plainText(message)
  if (type === 'tool.call') {
    const items = message.parts.map(toItem)
    const media = items.some((item) => item.type !== 'text')
    return { type: 'tool.result', event_id, call_id: id, result: text, ...(media && { content_items: items }) }
  }
  if (type === 'x.approval.request' && (YES.test(text) || NO.test(text))) {
    return { type: 'x.approval.response', event_id, approval_id: id, approved: !NO.test(text), reason: text }
  }
  return undefined
}

function explain(missing: readonly Question[]): string {
  const how = {
    'tool.call': (id: string) => `{"type":"tool.result","call_id":"${id}","result":…}`,
    'x.approval.request': (id: string) => `{"type":"x.approval.response","approval_id":"${id}","approved":…}`,
    'payment.required': () => 'the metadata "x402.payment.payload"',
  }
  return `This task waits for an answer: send ${missing.map(({ id, type }) => how[type](id)).join(' and ')} in a data part`
}

function unanswered(message: string, questions: readonly Question[]): Error {
  return a2aError('INVALID_PARAMS', message, { field: 'message.parts', waiting: questions.map(({ id, type }) => ({ id, type })) })
}

/** The text of a message, its parts one below the other. */
function plainText({ parts }: Message): string {
  return parts.flatMap(({ text }) => (text === undefined ? [] : [text])).join('\n')
}
