import type { Access } from '../core/ports/access.ts'
import { UampError } from '../protocol/errors.ts'
import type { ClientSettings } from './issuer/clients.ts'
import { isReserved } from './scopes.ts'
import { wrongRule, type TrustRules } from './trust.ts'
import { ALGORITHMS, isAlgorithm, type Algorithm } from './verify/token.ts'

/** An identity provider whose access tokens are accepted: Keycloak, Entra, Auth0, or any other that speaks OpenID Connect. */
export interface IssuerSettings {
  /** As its tokens name it in `iss`. Its keys are found from there. */
  readonly issuer: string
  /** What `aud` of a token must name. Default: this server's URL, or that of one of its agents. */
  readonly audience?: string | readonly string[] | undefined
  /** Where its keys are. Default: its OpenID Connect discovery says it. */
  readonly jwksUri?: string | undefined
  /** `typ` in the header of its access tokens. Default: `at+jwt` (RFC 9068). Many providers send `JWT`. */
  readonly typ?: string | undefined
  /** Default: every asymmetric one. The key decides, not the token. */
  readonly algorithms?: readonly Algorithm[] | undefined
  /** Which claims say who the caller is and what they may do, such as `realm_access.roles`. */
  readonly claims?: ClaimPaths | undefined
  /**
   * A list: what a token may do at most, and what one may do that says nothing in our words. An object: what each word of a token means
   * here, with `*` for every token. Default: the token's own words.
   */
  readonly scopes?: readonly string[] | Readonly<Record<string, readonly string[]>> | undefined
}

interface ClaimPaths {
  /** Default: `sub`. */
  readonly id?: string | undefined
  /** Default: none, and the tenant is `default`. */
  readonly tenant?: string | undefined
  /** Several are read together, as `scp` and `roles` of Entra. Default: `scope`, or `scp` if there is none. */
  readonly scopes?: string | readonly string[] | undefined
  /** Default: none. */
  readonly labels?: string | undefined
}

/** Agents of other servers, which bring tokens of their own (AOAuth). Default: none are believed. */
interface AgentSettings extends TrustRules {
  /** What they may do at most, and what one may do whose token says nothing in our words. Default: what the token says. */
  readonly scopes?: readonly string[] | undefined
}

/** Whose tokens are accepted, and who gets tokens of this server. */
export interface AccessSettings {
  readonly issuers?: readonly IssuerSettings[] | undefined
  readonly agents?: AgentSettings | undefined
  /** Who may ask this server for tokens, beside its `tokens`. */
  readonly clients?: Readonly<Record<string, ClientSettings>> | undefined
  /** What this server signs its tokens with. Default: RS256, which everybody can verify. */
  readonly algorithm?: 'RS256' | 'EdDSA' | undefined
  /** Proofs of possession must carry a nonce of this server (RFC 9449 §8). Default: false. */
  readonly dpopNonce?: boolean | undefined
  /** How far clocks may differ. Default: 60. */
  readonly leewaySeconds?: number | undefined
  /** How long sockets and streams may go on after the end of their token. Default: 60. */
  readonly graceSeconds?: number | undefined
  /**
   * The proxies in `trustProxy` check client certificates, tell them in `Client-Cert` (RFC 9440), and remove that header from what
   * clients send. Default: false, because a proxy that passes it on would let anybody use a certificate that they have only seen.
   */
  readonly clientCertHeader?: boolean | undefined
}

/** An `Access` of the user's own, or settings for ours. */
export function accessIn(given: Access | AccessSettings | undefined): { readonly own?: Access; readonly settings: AccessSettings } {
  if (given === undefined) return { settings: {} }
  return 'authenticate' in given ? { own: given, settings: {} } : { settings: given }
}

/** True if the settings admit anybody by a token that this server or somebody else has issued. */
export function believes({ issuers = [], agents, clients = {} }: AccessSettings): boolean {
  return issuers.length > 0 || agents !== undefined || Object.keys(clients).length > 0
}

/** True if the settings cannot work without the server's own URL, which is in the tokens that it issues and in those that are for it. */
export function needsOwnUrl({ issuers = [], agents, clients = {} }: AccessSettings): boolean {
  return agents !== undefined || Object.keys(clients).length > 0 || issuers.some(({ audience }) => audience === undefined)
}

export type Mistake = readonly [path: readonly (string | number)[], message: string]

/** Everything in the settings that cannot work, or that would be unsafe. */
export function mistakesIn({ issuers = [], agents = {} }: AccessSettings): Mistake[] {
  const seen = new Set<string>()
  return [
    ...issuers.flatMap((each, at) => issuerMistakes(each, seen).map(([path, message]): Mistake => [['issuers', at, ...path], message])),
    ...(['allow', 'deny'] as const).flatMap((list) =>
      (agents[list] ?? []).flatMap((rule, at): Mistake[] => {
        const wrong = wrongRule(rule)
        return wrong === undefined ? [] : [[['agents', list, at], wrong]]
      }),
    ),
    ...(agents.trusted ?? []).flatMap((url, at): Mistake[] => (isAddress(url) ? [] : [[['agents', 'trusted', at], ADDRESS]])),
    ...reservedIn(agents.scopes ?? [], ['agents', 'scopes']),
  ]
}

const ADDRESS = 'must be a URL such as "https://login.example.com", without a query'

/** Entra: no token has these in `iss`. */
const MANY = /^https:\/\/login\.microsoftonline\.com\/(?:common|organizations|consumers)(?:\/|$)/

function issuerMistakes({ issuer, jwksUri, scopes = [], algorithms = [] }: IssuerSettings, seen: Set<string>): Mistake[] {
  const mistakes: Mistake[] = []
  if (!isAddress(issuer)) mistakes.push([['issuer'], ADDRESS])
  if (MANY.test(issuer)) mistakes.push([['issuer'], 'stands for the issuers of many tenants: name yours by its id'])
  const bare = issuer.replace(/\/$/, '')
  if (seen.has(bare)) mistakes.push([['issuer'], 'is named twice'])
  seen.add(bare)
  if (jwksUri !== undefined && !/^https?:\/\//.test(jwksUri))
    mistakes.push([['jwksUri'], 'must be a URL such as "https://login.example.com/keys"'])
  for (const [at, name] of algorithms.entries()) {
    if (!isAlgorithm(name))
      mistakes.push([['algorithms', at], `must be one of ${Object.keys(ALGORITHMS).join(', ')}: nothing else is safe here`])
  }
  const lists = isList(scopes) ? [[undefined, scopes] as const] : Object.entries(scopes)
  for (const [word, list] of lists) mistakes.push(...reservedIn(list, word === undefined ? ['scopes'] : ['scopes', word]))
  return mistakes
}

export function isList(scopes: NonNullable<IssuerSettings['scopes']>): scopes is readonly string[] {
  return Array.isArray(scopes)
}

function reservedIn(words: readonly string[], path: readonly (string | number)[]): Mistake[] {
  return words.flatMap((word, at): Mistake[] =>
    isReserved(word) ? [[[...path, at], `gives "${word}", which only a token of this server itself can have`]] : [],
  )
}

function isAddress(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url !== undefined && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '' && url.username === ''
}

/** Throws at the first mistake, for settings that no config has checked. */
export function checkSettings(settings: AccessSettings): void {
  const [first] = mistakesIn(settings)
  if (first) throw new UampError('invalid_request', `access.${first[0].join('.')} ${first[1]}`)
}
