import type { Denial } from '../../core/ports/access.ts'
import { oneLoopback } from '../../wire/address.ts'
import { agentAt } from '../issuers.ts'
import { refused } from './token.ts'

/** What a token is for. */
export interface Audience {
  /** Undefined: every agent of this server. */
  readonly agents: readonly string[] | undefined
}

const OTHER = refused('invalid', 'The token is for another server')

/** `wanted`: what the operator expects in place of this server's own addresses. */
export function audienceOf(
  given: readonly string[],
  wanted: string | readonly string[] | undefined,
  ownUrl: string | undefined,
): Audience | Denial {
  if (wanted !== undefined) {
    const all = typeof wanted === 'string' ? [wanted] : wanted
    return given.some((each) => all.includes(each)) ? { agents: undefined } : OTHER
  }
  if (ownUrl === undefined) return refused('invalid', 'This server does not know its own URL, so no token can be for it: set publicUrl')
  const own = oneLoopback(ownUrl)
  const audiences = given.map(oneLoopback)
  if (audiences.some((each) => each === own || each === `${own}/`)) return { agents: undefined }
  const agents = audiences.flatMap((each) => agentAt(own, each) ?? [])
  return agents.length > 0 ? { agents } : OTHER
}
