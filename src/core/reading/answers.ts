import type { Waiting } from '../ports/session.ts'
import { answered, type Answer } from '../engine/questions.ts'

type Question = Pick<Waiting['questions'][number], 'id' | 'type'>

/** Matches answers with questions. A turn continues only when no answer is missing. */
export function matchAnswers<Q extends Question, A extends Answer>(
  questions: readonly Q[],
  answers: readonly A[],
): { readonly missing: readonly Q[]; readonly notAsked: readonly A[] } {
  return {
    missing: questions.filter((question) => !answers.some((answer) => answered([question], answer))),
    notAsked: answers.filter((answer) => !answered(questions, answer)),
  }
}
