import { principalId } from '../../core/basics/principal.ts'
import type { Denial, Principal } from '../../core/ports/access.ts'
import type { GuardedHttp, HttpClient } from '../../core/ports/http.ts'
import type { Signer } from '../../core/ports/keys.ts'
import type { Logger } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { isOwnIssuer } from '../issuers.ts'
import { foreignScopes, within } from '../scopes.ts'
import { isList, type AccessSettings, type IssuerSettings } from '../settings.ts'
import { agentUrl, judge } from '../trust.ts'
import { audienceOf, type Audience } from './audience.ts'
import {
  actorIn,
  audiencesIn,
  checkTimes,
  claimAt,
  confirmationIn,
  isGrant,
  isOtherKind,
  isTime,
  labelsIn,
  nameIn,
  wordsIn,
  type Confirmation,
} from './claims.ts'
import type { Found, KeySource } from './key-set.ts'
import { OwnKeys } from './own-keys.ts'
import { ForeignKeys, RemoteKeys } from './remote-keys.ts'
import { bareType } from '../../wire/compact-jws.ts'
import { hasSignature, parseToken, refused, type Parsed } from './token.ts'

/** AOAuth: tokens between agents live for at most an hour. */
const LONGEST_MS = 3_600_000

/** What a verifier needs of its server. */
export interface VerifierParts {
  readonly signer: Pick<Signer, 'publicJwks'> | undefined
  /** For issuers that the operator configured. */
  readonly http: Pick<HttpClient, 'request'>
  /** For issuers that strangers name. Undefined: they are all refused. */
  readonly outbound: GuardedHttp | undefined
  readonly ownUrl: () => string | undefined
  readonly closing: AbortSignal
  readonly log: Logger
  readonly now: () => number
  readonly monotonic: () => number
}

/** A token that is right. */
export interface Verified {
  readonly principal: Principal
  /** What each sender must prove to hold. */
  readonly confirmation: Confirmation | undefined
}

/** Told of every step, for those who want to know why. `isRight`: false if this is why the token is refused. */
export type Note = (step: string, found: string, isRight?: boolean) => void

export interface VerifyOptions {
  /** Tells callers apart, to bound what strangers make this server do. */
  readonly from?: string | undefined
  readonly note?: Note | undefined
}

/** Whose token it is, and what applies to it. */
interface Kind {
  readonly name: string
  readonly keys: () => KeySource
  readonly typ: string
  readonly algorithms?: readonly string[] | undefined
  readonly audience?: IssuerSettings['audience']
  readonly longestMs?: number | undefined
  readonly needsId: boolean
  /** Keys that cannot be read are a failure of ours, not of the caller. */
  readonly isConfigured?: true
  /** For tokens whose type does not say that they are access tokens. */
  isAccess?(claims: Parsed['claims']): boolean
  principal(subject: string, claims: Parsed['claims'], note: Note | undefined): Omit<Principal, 'agents'> | Denial
  proved?(): void
}

/** Verifies access tokens by RFC 8725 and RFC 9068: those of this server, of configured providers, and of agents elsewhere. */
export class Verifier {
  readonly #settings: AccessSettings
  readonly #parts: VerifierParts
  readonly #own: OwnKeys
  readonly #configured = new Map<string, { readonly settings: IssuerSettings; readonly keys: RemoteKeys }>()
  readonly #foreign: ForeignKeys | undefined

  constructor(settings: AccessSettings, parts: VerifierParts) {
    const { http, outbound, closing, monotonic, log } = parts
    this.#settings = settings
    this.#parts = parts
    this.#own = new OwnKeys(parts)
    const onFailure = (issuer: string, error: unknown): void => log('warn', 'The keys of an issuer could not be read', { issuer, error })
    const options = { closing, monotonic, onFailure }
    for (const each of settings.issuers ?? []) {
      const { issuer, jwksUri } = each
      const keys = new RemoteKeys({ issuer, jwksUri, isStranger: false }, { ...options, http })
      this.#configured.set(bare(issuer), { settings: each, keys })
    }
    this.#foreign = outbound && new ForeignKeys({ ...options, http: outbound })
  }

  get leewayMs(): number {
    return (this.#settings.leewaySeconds ?? 60) * 1000
  }

  /** True if the token says that it is one of this server's. */
  isOwn(text: string): boolean {
    const parsed = parseToken(text)
    return !('denied' in parsed) && isOwnIssuer(this.#parts.ownUrl(), nameIn(parsed.claims['iss']) ?? '')
  }

  async verify(text: string, { from = '', note }: VerifyOptions = {}): Promise<Verified | Denial> {
    const parsed = parseToken(text)
    if ('denied' in parsed) return parsed
    const { claims, alg, kid, typ } = parsed
    note?.('form', `a JWT signed with ${alg}`)
    const issuer = nameIn(claims['iss'])
    if (issuer === undefined) return refused('invalid', 'The token does not name its issuer')
    const kind = this.#kindOf(issuer, parsed, { from, note })
    if ('denied' in kind) return kind
    note?.('issuer', `${issuer}: ${kind.name}`)
    if (typ === 'payment+jwt') return refused('invalid', 'This is a payment token: send it in the header X-PAYMENT, and not as who you are')
    if (typ !== kind.typ) return refused('invalid', `The token is of the type "${typ.slice(0, 32)}", and must be "${kind.typ}"`)
    if (isOtherKind(claims) || kind.isAccess?.(claims) === false) return refused('invalid', 'This is not an access token')
    if (kind.algorithms && !kind.algorithms.includes(alg)) return refused('invalid', `Tokens of this issuer must not be signed with ${alg}`)
    note?.('type', kind.typ)
    const { now } = this.#parts
    const time = checkTimes(claims, { now: now(), leewayMs: this.leewayMs, longestMs: kind.longestMs })
    if (time) {
      note?.('time', timesOf(claims, now()), false)
      return time
    }
    note?.('time', `ends at ${new Date(Number(claims['exp']) * 1000).toISOString()}`)
    const [given, ownUrl] = [audiencesIn(claims), this.#parts.ownUrl()]
    const audience = audienceOf(given, kind.audience, ownUrl)
    if ('denied' in audience) {
      const wanted = kind.audience === undefined ? `${ownUrl ?? 'unknown'}, or an agent below it` : [kind.audience].flat().join(' or ')
      note?.('audience', `"aud" is ${given.join(', ') || 'missing'}, and must be ${wanted}`, false)
      return audience
    }
    note?.('audience', audience.agents ? `the agent ${audience.agents.join(', ')}` : 'this server')
    const key = await kind.keys().find(kid, alg)
    if (typeof key === 'string') {
      note?.('key', kid === undefined ? '"kid" is missing' : `"kid" is ${kid}`, false)
      return keyDenial(key, kind)
    }
    note?.('key', kid === undefined ? 'the only one of the issuer' : 'known by its kid')
    if (!(await hasSignature(parsed, key))) return refused('invalid', 'The signature of the token is wrong')
    note?.('signature', 'right')
    kind.proved?.()
    return this.#verified(parsed, kind, { ...audience, note })
  }

  #verified({ claims, kid }: Parsed, kind: Kind, { agents, note }: Audience & Pick<VerifyOptions, 'note'>): Verified | Denial {
    const subject = nameIn(claims['sub'])
    if (subject === undefined) return refused('invalid', 'The token does not say whose it is')
    const jti = nameIn(claims['jti'])
    if (jti === undefined && kind.needsId) return refused('invalid', 'The token has no id')
    const confirmation = confirmationIn(claims['cnf'])
    if (confirmation === false) return refused('proof', 'The token asks for a proof that this server does not know')
    const actor = actorIn(claims['act'])
    if (actor === false) return refused('invalid', 'The token does not say who acts for its owner')
    const principal = kind.principal(subject, claims, note)
    if ('denied' in principal) return principal
    const expiresAt = Number(claims['exp']) * 1000
    const added = { expiresAt, ...(actor && { actor }), ...(agents && { agents }), ...(jti !== undefined && { credential: jti }), key: kid }
    return { principal: { ...principal, ...added }, confirmation }
  }

  #kindOf(issuer: string, { claims }: Parsed, { from, note }: { readonly from: string; readonly note: Note | undefined }): Kind | Denial {
    if (isOwnIssuer(this.#parts.ownUrl(), issuer)) return this.#ownKind(issuer)
    const configured = this.#configured.get(bare(issuer))
    if (configured) return configuredKind(issuer, configured)
    return this.#foreignKind(issuer, claims, { from, note })
  }

  #ownKind(issuer: string): Kind {
    return {
      name: 'this server itself',
      keys: () => this.#own,
      typ: 'at+jwt',
      needsId: true,
      principal: (subject, claims) => ({
        tenant: 'default',
        id: principalId(issuer, subject, nameIn(claims['agent_path'])),
        issuer,
        subject,
        scopes: wordsIn(claims['scope']),
      }),
    }
  }

  /** Nobody is called before the rules have accepted the issuer and the name that it gives. */
  #foreignKind(
    issuer: string,
    claims: Parsed['claims'],
    { from, note }: { readonly from: string; readonly note: Note | undefined },
  ): Kind | Denial {
    const foreign = this.#foreign
    const { agents = {} } = this.#settings
    const { outbound, ownUrl } = this.#parts
    const [subject, path] = [nameIn(claims['sub']), claims['agent_path']]
    if (subject === undefined) return refused('invalid', 'The token does not say whose it is')
    if (path !== undefined && !(typeof path === 'string' && /^(?:\/[\w.~-]{1,64}){0,8}$/.test(path))) {
      return refused('invalid', 'The path of the agent in the token cannot be read')
    }
    const words = wordsIn(claims['scope'])
    const candidate = { issuer, subject, path: path as string | undefined, labels: labelsIn(words) }
    const { accepted, because } = judge(agents, candidate, ownUrl())
    note?.('trust', because, accepted)
    if (!accepted || !foreign || !outbound) {
      return { ...refused('untrusted', 'This server does not believe the issuer of the token'), claimed: { issuer, subject } }
    }
    if (!isCanonical(issuer) || outbound.refuses(issuer) !== undefined) {
      return refused('untrusted', 'The issuer of the token is not an address on the public internet')
    }
    const isTrusted = (agents.trusted ?? []).some((each) => bare(each) === bare(issuer))
    return {
      name: `an agent elsewhere, ${agentUrl(candidate)}`,
      keys: () => foreign.of(issuer, from),
      proved: () => foreign.prove(issuer),
      typ: 'at+jwt',
      longestMs: LONGEST_MS,
      needsId: true,
      principal: () => ({
        tenant: 'default',
        id: principalId(issuer, subject, candidate.path),
        issuer,
        subject,
        scopes: within(foreignScopes(words), agents.scopes),
        ...(isTrusted && candidate.labels.length > 0 && { labels: candidate.labels }),
      }),
    }
  }
}

function configuredKind(issuer: string, { settings, keys }: { readonly settings: IssuerSettings; readonly keys: RemoteKeys }): Kind {
  const { algorithms, audience, claims: paths = {} } = settings
  const typ = bareType(settings.typ ?? 'at+jwt')
  const { scopes: scopePath = [] } = paths
  const scopePaths = typeof scopePath === 'string' ? [scopePath] : scopePath
  return {
    name: 'a provider in "access.issuers"',
    isConfigured: true,
    keys: () => keys,
    typ,
    algorithms,
    audience,
    // RFC 9068 demands it of `at+jwt`; other tokens often have none.
    needsId: typ === 'at+jwt',
    isAccess: (claims) => typ === 'at+jwt' || isGrant(claims, scopePaths),
    principal(subject, claims, note) {
      const lacks = (path = ''): void => note?.('claims', `"${path}" is missing; there are ${Object.keys(claims).join(', ')}`, false)
      const id = paths.id === undefined ? subject : nameIn(claimAt(claims, paths.id))
      if (id === undefined) {
        lacks(paths.id)
        return refused('invalid', 'The token lacks the claim that says whose it is')
      }
      const tenant = paths.tenant === undefined ? 'default' : nameIn(claimAt(claims, paths.tenant))
      if (tenant === undefined) {
        lacks(paths.tenant)
        return refused('invalid', 'The token lacks the claim that names its tenant')
      }
      const given = scopePaths.length === 0 ? [claims['scope'] ?? claims['scp']] : scopePaths.map((path) => claimAt(claims, path))
      const words = given.flatMap(wordsIn)
      const labels = paths.labels === undefined ? [] : wordsIn(claimAt(claims, paths.labels))
      const scopes = scopesOf(words, settings.scopes)
      return { tenant, id: principalId(issuer, id), issuer, subject, scopes, ...(labels.length > 0 && { labels }) }
    },
  }
}

function scopesOf(words: readonly string[], scopes: IssuerSettings['scopes']): readonly string[] {
  if (scopes === undefined || isList(scopes)) return within(foreignScopes(words), scopes)
  // A role of the provider may be called `admin`: what it means here is what the operator says.
  const meant = ['*', ...words].flatMap((word) => (Object.hasOwn(scopes, word) ? (scopes[word] ?? []) : []))
  return [...new Set(foreignScopes(meant))]
}

function keyDenial(found: Exclude<Found, CryptoKey>, { isConfigured }: Kind): Denial {
  switch (found) {
    case 'unknown':
      return refused('invalid', 'The token is signed with a key that its issuer does not publish')
    case 'ambiguous':
      return refused('invalid', 'The issuer of the token publishes several keys that could have signed it')
    case 'unfit':
      return refused('invalid', 'The key of the token is not for its algorithm')
    case 'unreachable':
      if (!isConfigured) return refused('untrusted', 'The keys of the issuer of the token cannot be read')
      throw new UampError('overloaded', 'The keys of the identity provider cannot be read now', { details: { retry_after: 60 } })
  }
}

/** For people. */
function timesOf({ iat, nbf, exp }: Parsed['claims'], now: number): string {
  const shown = (at: unknown): string => (isTime(at) ? new Date(at * 1000).toISOString() : 'missing')
  const begins = nbf === undefined ? '' : `, "nbf" is ${shown(nbf)}`
  return `"iat" is ${shown(iat)}${begins}, "exp" is ${shown(exp)}; now it is ${new Date(now).toISOString()}`
}

function bare(issuer: string): string {
  return issuer.endsWith('/') ? issuer.slice(0, -1) : issuer
}

/** One way to write an issuer: a rule that denies it must not be passed by writing it otherwise. */
function isCanonical(issuer: string): boolean {
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined
  return url !== undefined && bare(url.href) === bare(issuer) && url.search === '' && url.hash === '' && !url.hostname.endsWith('.')
}
