import type { EventOf } from '../protocol/events.ts'
import type { Verified, VerifyResponseOptions } from './verify.ts'

/** Checks the signature of an answer against the keys of its issuer, or against `jwks`. A wrong signature is a result, not an error. */
export async function verifyResponse(
  event: Pick<EventOf<'response.done'>, 'signature' | 'response'>,
  options?: VerifyResponseOptions,
): Promise<Verified> {
  // Only those who verify load it.
  const { verifyDone } = await import('./verify.ts')
  return verifyDone(event, options)
}
