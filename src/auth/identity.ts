import type { Access, Credentials, Denial, Principal } from '../core/ports/access.ts'
import { presentedToken, type Presented } from './bearer.ts'
import { may } from './scopes.ts'
import { believes, checkSettings, type AccessSettings } from './settings.ts'
import { staticTokens, type StaticTokensOptions } from './static-tokens.ts'
import { Proofs } from './verify/dpop.ts'
import { TokenCache } from './verify/token-cache.ts'
import { looksLikeJwt, refused } from './verify/token.ts'
import { Verifier, type Verified, type VerifierParts } from './verify/verifier.ts'

/** What it needs of its server, which does not exist yet when the access is made. */
export interface IdentityParts extends VerifierParts {
  /** Uses up a name in the store; false if it was used before. */
  readonly once: (key: string, ttlMs: number) => Promise<boolean>
}

export interface IdentityOptions extends StaticTokensOptions {
  readonly settings?: AccessSettings | undefined
  readonly parts: () => IdentityParts
}

/**
 * Admits callers by secrets from a list, by tokens of this server, of configured identity providers, and of agents elsewhere that the
 * rules believe.
 */
export function identityAccess(options: IdentityOptions): Access {
  checkSettings(options.settings ?? {})
  return new Identity(options)
}

const ANONYMOUS: Credentials = {}

class Identity implements Access {
  readonly schemes: Access['schemes']
  /** How long sockets and streams may go on after the end of their token. */
  readonly graceSeconds: number | undefined
  readonly #options: IdentityOptions
  readonly #fixed: Access | undefined
  /** Whoever has no token is admitted. */
  readonly #anonymous: Access
  /** Nobody can be told apart, so any token will do: some clients cannot do without a key. */
  readonly #isOpen: boolean
  readonly #cache = new TokenCache(() => this.#identity().parts.monotonic())
  #made: { readonly verifier: Verifier; readonly proofs: Proofs; readonly parts: IdentityParts } | undefined

  constructor(options: IdentityOptions) {
    const { tokens, anonymous, settings = {} } = options
    this.#options = options
    this.graceSeconds = settings.graceSeconds
    const fixed = staticTokens(options)
    const hasTokens = Object.keys(tokens).length > 0
    this.#fixed = hasTokens ? fixed : undefined
    this.#anonymous = fixed
    this.#isOpen = anonymous && !hasTokens && !believes(settings)
    this.schemes = this.#isOpen ? [] : ['Bearer', 'DPoP']
  }

  authorize = may

  async authenticate(credentials: Credentials): Promise<Principal | Denial | undefined> {
    const presented = presentedToken(credentials)
    if (presented === undefined) return this.#anonymous.authenticate(ANONYMOUS)
    const { token, scheme } = presented
    const known = this.#cache.get(token)
    if (known) return this.#admit(known, presented, credentials)
    if (scheme !== 'DPoP') {
      const named = await this.#fixed?.authenticate({ token })
      if (named) return named
    }
    const isJwt = looksLikeJwt(token)
    if (this.#isOpen && !(isJwt && this.#identity().verifier.isOwn(token))) return this.#anonymous.authenticate(ANONYMOUS)
    if (!isJwt) return undefined
    const verified = await this.#identity().verifier.verify(token, { from: credentials.from })
    if ('denied' in verified) return challenged(verified, scheme)
    this.#cache.add(token, verified)
    return this.#admit(verified, presented, credentials)
  }

  #identity() {
    if (this.#made) return this.#made
    const { settings = {}, parts: partsOf } = this.#options
    const parts = partsOf()
    const verifier = new Verifier(settings, parts)
    const { now, once } = parts
    const proofs = new Proofs({ now, once, leewayMs: verifier.leewayMs, needsNonce: settings.dpopNonce ?? false })
    return (this.#made = { verifier, proofs, parts })
  }

  /** What a token alone does not say: whether it still counts, and whether its sender is the one that it was given to. */
  #admit(verified: Verified, presented: Presented, credentials: Credentials): Principal | Denial | Promise<Principal | Denial> {
    const { parts, verifier } = this.#identity()
    const { token, scheme } = presented
    const { principal, confirmation } = verified
    if ((principal.expiresAt ?? Infinity) + verifier.leewayMs <= parts.now()) {
      this.#cache.delete(token)
      return challenged(refused('expired', 'The token has expired'), scheme)
    }
    if (confirmation) return this.#confirm(verified, presented, credentials)
    return scheme === 'DPoP' ? challenged(refused('proof', 'The token is not for DPoP: send it as Bearer'), 'Bearer') : principal
  }

  async #confirm(
    { principal, confirmation }: Verified,
    { token, scheme }: Presented,
    credentials: Credentials,
  ): Promise<Principal | Denial> {
    const { jkt, x5t } = confirmation ?? {}
    if (x5t !== undefined && x5t !== credentials.certificate) {
      return challenged(refused('proof', 'The token is for the holder of a certificate, which this connection does not show'), scheme)
    }
    if (jkt !== undefined && scheme === 'DPoP') {
      const denial = await this.#identity().proofs.check(token, jkt, credentials)
      if (denial) return denial
    } else if (jkt !== undefined && credentials.proven !== jkt) {
      return challenged(refused('proof', 'The token is for the holder of a key: send it as DPoP, with a proof'), 'DPoP')
    }
    return { ...principal, confirmation: jkt ?? x5t }
  }
}

/** RFC 6750 §3. */
function challenged(denial: Denial, scheme: Presented['scheme']): Denial {
  if (denial.challenge !== undefined) return denial
  const description = denial.message.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, "'")
  const challenge = `${scheme === 'DPoP' ? 'DPoP' : 'Bearer'} error="invalid_token", error_description="${description}"`
  return { ...denial, challenge }
}
