import { UampError } from '../../protocol/errors.ts'
import { Answer } from './answer.ts'
import type { Begun } from './start.ts'

/** The whole answer. Throws if it failed or was stopped. */
export async function whole({ run, about }: Begun): Promise<Answer> {
  const answer = new Answer(about)
  for (let batch = await run.take(); batch; batch = await run.take()) answer.take(batch)
  const failure = answer.ended ? answer.failure : new UampError('cancelled', 'The answer was stopped')
  if (!failure) {
    run.close()
    return answer
  }
  await run.refuse({ type: failure.code === 'payment_required' ? 'payment.required' : 'response.error' })
  throw failure
}
