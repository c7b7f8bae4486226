import { UampError } from '../../protocol/errors.ts'
import { tooShort, type Grants } from '../static-tokens.ts'

/** A program that may ask this server for tokens. It has either a secret, or keys that it signs with. */
export interface ClientSettings {
  readonly secret?: string | undefined
  /** Its public keys (RFC 7517). */
  readonly jwks?: { readonly keys: readonly object[] } | undefined
  /** Where its public keys are. */
  readonly jwksUri?: string | undefined
  /** The most that it gets, and what it gets if it asks for nothing. Default: `write`. */
  readonly scopes?: readonly string[] | undefined
  /**
   * What its tokens may be for: names of agents here, URLs of agents elsewhere, `https://example.com/*` for all below it, or `*` for
   * everything. Default: this server and its agents.
   */
  readonly targets?: readonly string[] | undefined
}

export interface Client {
  readonly name: string
  readonly secret: string | undefined
  readonly jwks: ClientSettings['jwks']
  readonly jwksUri: string | undefined
  readonly scopes: readonly string[]
  readonly targets: readonly string[] | undefined
  /** A client that has the name of an agent here is that agent. A caller with a token of the same name is not. */
  readonly mayBeAgent: boolean
}

export interface ClientsOptions {
  readonly clients?: Readonly<Record<string, ClientSettings>> | undefined
  /** Secrets by name. Each is a client, too. */
  readonly tokens?: Readonly<Record<string, string>> | undefined
  readonly grants?: Grants | undefined
}

const DEFAULT_SCOPES = ['write']
/** What every static token may do, in the words of scopes. */
const TOKEN_SCOPES = ['write', 'operate']

/** All clients by name. Throws if one of them could not be used, or would open a door. */
export function clientsFrom({ clients = {}, tokens = {}, grants = {} }: ClientsOptions): ReadonlyMap<string, Client> {
  const callers = Object.entries(tokens).map(([name, secret]): Client => {
    const scopes = [...TOKEN_SCOPES, ...(grants[name] ?? [])]
    return { name, secret, jwks: undefined, jwksUri: undefined, scopes, targets: undefined, mayBeAgent: false }
  })
  const configured = Object.entries(clients).map(([name, settings]): Client => {
    const mistake = mistakeIn(name, settings, tokens)
    if (mistake !== undefined) throw new UampError('invalid_request', `The client "${name}" ${mistake}`)
    const { secret, jwks, jwksUri, scopes = DEFAULT_SCOPES, targets } = settings
    return { name, secret, jwks, jwksUri, scopes, targets, mayBeAgent: true }
  })
  return new Map([...callers, ...configured].map((client) => [client.name, client]))
}

/** What is wrong with a client, as the end of a sentence. */
export function mistakeIn(name: string, { secret, jwks, jwksUri }: ClientSettings, tokens: object): string | undefined {
  if (name === 'anonymous' || name === '') return 'cannot have this name'
  if (Object.hasOwn(tokens, name)) return 'is also the name of a token: choose another'
  if ([secret, jwks, jwksUri].filter((each) => each !== undefined).length !== 1) return 'must have one of "secret", "jwks" and "jwksUri"'
  const short = secret === undefined ? undefined : tooShort(secret)
  if (short !== undefined) return `has a secret that ${short}`
  if (jwksUri !== undefined && !URL.canParse(jwksUri)) return 'has a "jwksUri" that is not a URL'
  return jwks?.keys.some((key) => 'd' in key || 'k' in key) ? 'has a private key in "jwks": only the public half belongs there' : undefined
}
