import type { Intent } from './schema.ts'

/** What becomes of a message that asks for something (UAMP envelope §10). */
export type ExchangeState = 'NEW' | 'IN_PROGRESS' | 'COMPLETED' | 'CANCELLED' | 'ERROR'

/** What moves it: an intent of an envelope, or the last frame of a stream. */
export type Step = Intent | 'done'

const MOVES = {
  NEW: { ask: 'IN_PROGRESS', subscribe: 'IN_PROGRESS' },
  IN_PROGRESS: { confirm: 'COMPLETED', done: 'COMPLETED', cancel: 'CANCELLED', error: 'ERROR' },
  COMPLETED: {},
  CANCELLED: {},
  ERROR: {},
} as const satisfies Record<ExchangeState, Partial<Record<Step, ExchangeState>>>

/** The state after a step. Undefined: this step is not one of that state, which then stays as it is. */
export function stateAfter(state: ExchangeState, step: Step): ExchangeState | undefined {
  return (MOVES[state] as Partial<Record<Step, ExchangeState>>)[step]
}

/** True if nothing can happen any more. */
export function isOver(state: ExchangeState): boolean {
  return Object.keys(MOVES[state]).length === 0
}
