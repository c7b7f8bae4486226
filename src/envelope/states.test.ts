import { expect } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { INTENTS } from './schema.ts'
import { isOver, stateAfter, type ExchangeState, type Step } from './states.ts'

const STATES = ['NEW', 'IN_PROGRESS', 'COMPLETED', 'CANCELLED', 'ERROR'] as const satisfies readonly ExchangeState[]
const STEPS: readonly Step[] = [...INTENTS, 'done']

/** The moves of UAMP envelope §10, and no others. */
const MOVES: readonly (readonly [from: ExchangeState, step: Step, to: ExchangeState])[] = [
  ['NEW', 'ask', 'IN_PROGRESS'],
  ['NEW', 'subscribe', 'IN_PROGRESS'],
  ['IN_PROGRESS', 'confirm', 'COMPLETED'],
  ['IN_PROGRESS', 'done', 'COMPLETED'],
  ['IN_PROGRESS', 'cancel', 'CANCELLED'],
  ['IN_PROGRESS', 'error', 'ERROR'],
]

verifies('envelope:states', 'every state and every step', () => {
  for (const state of STATES) {
    for (const step of STEPS) {
      const to = MOVES.find(([from, by]) => from === state && by === step)?.[2]
      expect([state, step, stateAfter(state, step)]).toEqual([state, step, to])
    }
  }
  expect(STATES.filter(isOver)).toEqual(['COMPLETED', 'CANCELLED', 'ERROR'])
})
