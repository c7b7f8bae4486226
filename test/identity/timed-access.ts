import { bearerToken } from '../../src/auth/bearer.ts'
import type { Access, Credentials, Denial, Principal } from '../../src/core/ports/access.ts'

interface Given {
  /** Milliseconds from now. Default: it never expires. */
  readonly expiresIn?: number
  readonly scopes?: readonly string[]
}

/** Tokens that end. It takes expired ones, too, unless it is strict, so that tests need not hurry. */
export class TimedAccess implements Access {
  readonly schemes = ['Bearer'] as const
  readonly graceSeconds: number
  readonly #strict: boolean
  readonly #known = new Map<string, Principal>()

  constructor({ graceSeconds = 0.1, strict = false } = {}) {
    this.graceSeconds = graceSeconds
    this.#strict = strict
  }

  give(id: string, { expiresIn, scopes = ['call', 'tool', 'operate'] }: Given = {}): string {
    const token = `${id}-${crypto.randomUUID()}`
    const expiresAt = expiresIn === undefined ? undefined : Date.now() + expiresIn
    this.#known.set(token, { tenant: 't', id, scopes, expiresAt, credential: token })
    return token
  }

  async authenticate(credentials: Credentials): Promise<Principal | Denial | undefined> {
    const token = bearerToken(credentials)
    if (token === undefined) return { denied: 'missing', message: 'No token' }
    const principal = this.#known.get(token)
    const isLate = principal?.expiresAt !== undefined && principal.expiresAt <= Date.now()
    return this.#strict && isLate ? { denied: 'expired', message: 'The token has expired' } : principal
  }

  authorize({ scopes }: Principal, action: string): boolean {
    return scopes.includes(action)
  }
}
