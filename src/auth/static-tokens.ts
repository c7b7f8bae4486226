import type { Access, Principal } from '../core/ports/access.ts'
import { UampError } from '../protocol/errors.ts'
import { bearerToken } from './bearer.ts'

export interface StaticTokensOptions {
  /** Name to secret. Each name is a principal of its own. */
  readonly tokens: Readonly<Record<string, string>>
  /**
   * Whether a caller without a token is let in, as the principal `anonymous`. A wrong token never is; but where there is none to be
   * right, there is none to be wrong: clients that cannot do without a key send any.
   */
  readonly anonymous: boolean
}

/** Characters of a secret. Whoever guesses has no end of time, and shorter ones are words. */
const SHORTEST = 16

const ANONYMOUS: Principal = { tenant: 'default', id: 'anonymous', scopes: ['*'] }

export function staticTokens({ tokens, anonymous }: StaticTokensOptions): Access {
  const known = Object.entries(tokens).map(([name, secret]) => {
    if (secret === '') throw new UampError('invalid_request', `The token "${name}" has no secret`)
    if (secret.length < SHORTEST) throw new UampError('invalid_request', tooShort(name, secret))
    // A named token must not be able to act for everybody who has none.
    if (name === ANONYMOUS.id) throw new UampError('invalid_request', `"${name}" cannot be a token's name`)
    return { secret, principal: { tenant: 'default', id: name, scopes: ['*'] } satisfies Principal }
  })

  return {
    schemes: known.length > 0 ? ['Bearer'] : [],
    async authenticate(credentials) {
      if (known.length === 0) return anonymous ? ANONYMOUS : undefined
      const token = bearerToken(credentials)
      if (token === undefined) return anonymous ? ANONYMOUS : undefined
      let found: Principal | undefined
      // No early exit: the time must not tell which token was nearly right.
      for (const { secret, principal } of known) if (isEqual(secret, token)) found = principal
      return found
    },
    authorize: ({ scopes }, action) => scopes.includes('*') || scopes.includes(action),
  }
}

/** Takes as long for a wrong first character as for a wrong last one. Not a digest of both: that is a thread-pool job for every request. */
function isEqual(secret: string, token: string): boolean {
  let difference = secret.length ^ token.length
  for (let i = 0; i < secret.length; i++) difference |= secret.charCodeAt(i) ^ token.charCodeAt(i)
  return difference === 0
}

function tooShort(name: string, { length }: string): string {
  return `The secret of the token "${name}" has ${length} characters, and needs ${SHORTEST}: \`openssl rand -hex 16\` prints a good one`
}
