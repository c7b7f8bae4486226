import type { Draft, EventOf } from '../../../protocol/events.ts'
import type { Json } from '../../../protocol/json.ts'
import type { Part, Struct } from '../model.ts'
import { offer } from './x402.ts'

export type Asked = Draft<EventOf<'tool.call' | 'x.approval.request' | 'payment.required'>>

/** What a task waits for: in words, and as data that a program can answer. */
export function asked(questions: readonly Asked[], now: number): { readonly parts: Part[]; readonly metadata: Struct | undefined } {
  const payment = questions.find((event) => event.type === 'payment.required')
  return {
    parts: [{ text: questions.map(inWords).join('\n') }, ...questions.map((question) => ({ data: question as unknown as Json }))],
    metadata: payment && offer(payment, now),
  }
}

function inWords(question: Asked): string {
  switch (question.type) {
    case 'tool.call':
      return `Run the tool "${question.name}" with ${question.arguments} and answer with its result.`
    case 'x.approval.request':
      return question.message
    case 'payment.required': {
      const { amount, currency, reason } = question.requirements
      return reason ?? `Payment required: ${amount} ${currency}`
    }
  }
}
