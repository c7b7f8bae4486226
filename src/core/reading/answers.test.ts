import { expect, test } from 'vitest'
import type { Answer } from '../engine/questions.ts'
import { matchAnswers } from './answers.ts'

const call = { id: 'a', type: 'tool.call' } as const
const approval = { id: 'b', type: 'x.approval.request' } as const
const payment = { id: 'c', type: 'payment.required' } as const
const result: Answer = { type: 'tool.result', event_id: '1', call_id: 'a', result: '' }
const decision: Answer = { type: 'x.approval.response', event_id: '2', approval_id: 'b', approved: true }
const paid: Answer = { type: 'payment.submit', event_id: '3', payment: { scheme: 'token', token: 't' } }

test('answers to all questions leave nothing over', () => {
  expect(matchAnswers([call, approval, payment], [paid, decision, result])).toEqual({ missing: [], notAsked: [] })
})

test('a question without an answer is missing, and an answer without a question was not asked for', () => {
  expect(matchAnswers([call, approval], [result, paid])).toEqual({ missing: [approval], notAsked: [paid] })
})

test('an answer of another kind with the same id is none', () => {
  const wrong: Answer = { ...decision, approval_id: 'a' }
  expect(matchAnswers([call], [wrong])).toEqual({ missing: [call], notAsked: [wrong] })
})
