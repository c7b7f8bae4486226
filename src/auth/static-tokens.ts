import type { Access, Principal } from '../core/ports/access.ts'
import { isEqual } from '../core/secrets/is-equal.ts'
import { UampError } from '../protocol/errors.ts'
import { bearerToken } from './bearer.ts'
import { may } from './scopes.ts'

export interface StaticTokensOptions {
  /** Secrets by name. Each name is a principal of its own. */
  readonly tokens: Readonly<Record<string, string>>
  /** What a token may do beyond what every token may, by its name. */
  readonly grants?: Grants | undefined
  /**
   * Admits a caller without a token as the principal `anonymous`, but never one with a wrong token. If there are no tokens, any token
   * is admitted, because some clients cannot do without a key.
   */
  readonly anonymous: boolean
}

/**
 * `bank`: it may fill accounts, and see and move the money of others. `platform`: it may send interactions under session ids of its own (UAMP events §10.2). `host:alice`, `host:team.*`: it may offer an
 * agent of this name, or of a name that begins so, through this server.
 */
export type Grants = Readonly<Record<string, readonly ('platform' | 'bank' | `host:${string}`)[]>>

/** The fewest characters of a secret. An attacker has time to guess shorter ones. */
const SHORTEST = 16

const ANONYMOUS: Principal = { tenant: 'default', id: 'anonymous', scopes: ['*'] }

export function staticTokens({ tokens, grants = {}, anonymous }: StaticTokensOptions): Access {
  const stray = Object.keys(grants).find((name) => !Object.hasOwn(tokens, name))
  if (stray !== undefined) throw new UampError('invalid_request', `"grants" names "${stray}", which is not among the tokens`)
  const known = Object.entries(tokens).map(([name, secret]) => {
    if (secret === '') throw new UampError('invalid_request', `The token "${name}" has no secret`)
    const short = tooShort(secret)
    if (short !== undefined) throw new UampError('invalid_request', `The secret of the token "${name}" ${short}`)
    const twin = Object.keys(tokens).find((other) => other !== name && tokens[other] === secret)
    // Nobody could tell which of the two calls.
    if (twin !== undefined)
      throw new UampError('invalid_request', `The tokens "${twin}" and "${name}" have the same secret: give each its own`)
    // A named token must not act for callers without a token.
    if (name === ANONYMOUS.id) throw new UampError('invalid_request', `"${name}" cannot be a token's name`)
    return { secret, principal: { tenant: 'default', id: name, scopes: ['*', ...(grants[name] ?? [])] } satisfies Principal }
  })

  return {
    schemes: known.length > 0 ? ['Bearer'] : [],
    async authenticate(credentials) {
      if (known.length === 0) return anonymous ? ANONYMOUS : undefined
      const token = bearerToken(credentials)
      if (token === undefined) return anonymous ? ANONYMOUS : undefined
      let found: Principal | undefined
      // No early exit: the time must not show which token was nearly right. Digests would cost a job of the thread pool for every request.
      for (const { secret, principal } of known) if (isEqual(secret, token)) found = principal
      return found
    },
    authorize: may,
  }
}

/** What is wrong with the length of a secret, as the end of a sentence. */
export function tooShort({ length }: string): string | undefined {
  return length < SHORTEST ? `has ${length} characters, and needs ${SHORTEST}: \`openssl rand -hex 16\` prints a good one` : undefined
}
