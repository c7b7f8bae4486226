import * as z from 'zod/mini'
import { mistakeIn, type ClientSettings } from '../auth/issuer/clients.ts'
import { SCOPES } from '../auth/issuer/scope.ts'
import { isList, mistakesIn, type AccessSettings, type Mistake } from '../auth/settings.ts'
import { ALGORITHMS, type Algorithm } from '../auth/verify/token.ts'
import { nearest } from '../core/basics/nearest.ts'
import type { Variables } from './environment.ts'
import type { Problems } from './problems.ts'

const text = z.optional(z.string())
const texts = z.optional(z.array(z.string()))
const seconds = (what: string) =>
  z.optional(
    z.custom<number>(
      (value) => Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= 3600,
      `must be a whole number of seconds from 0 to 3600: ${what}`,
    ),
  )

const claimNames = z.optional(z.union([z.string(), z.array(z.string())], 'must be the name of a claim, or a list of names'))

const Issuer = z.strictObject({
  issuer: z.string('must be the URL that its tokens have in "iss", such as "https://login.example.com/realms/main"'),
  audience: z.optional(z.union([z.string(), z.array(z.string())], 'must be what its tokens have in "aud", or a list of that')),
  jwksUri: text,
  typ: z.optional(z.enum(['at+jwt', 'JWT'], 'must be "at+jwt" or "JWT": what its access tokens have as "typ" in their header')),
  algorithms: z.optional(z.array(z.enum(Object.keys(ALGORITHMS) as [Algorithm, ...Algorithm[]]))),
  claims: z.optional(z.strictObject({ id: text, tenant: text, scopes: claimNames, labels: text })),
  scopes: z.optional(
    z.union(
      [z.array(z.string()), z.record(z.string(), z.array(z.string()))],
      'must be a list of scopes, or an object with a list for each word of its tokens',
    ),
  ),
})

/** A program that may ask the server for tokens. */
const Client = z.strictObject({
  secret: z.optional(z.string('must be the secret, or "${NAME}" for the variable NAME of the environment')),
  jwks: z.optional(z.strictObject({ keys: z.array(z.record(z.string(), z.unknown()), 'must list public keys (JWK)') })),
  jwksUri: text,
  scopes: texts,
  targets: texts,
})

/** Whom the server believes. */
export const ACCESS_FIELDS = {
  clients: z.optional(z.record(z.string(), Client, 'must be an object with a field for each client, by its name')),
  algorithm: z.optional(z.enum(['RS256', 'EdDSA'])),
  issuers: z.optional(z.array(Issuer)),
  agents: z.optional(z.strictObject({ allow: texts, deny: texts, trusted: texts, scopes: texts })),
  dpopNonce: z.optional(z.boolean()),
  clientCertHeader: z.optional(z.boolean()),
  leewaySeconds: seconds('how far clocks may differ'),
  graceSeconds: seconds('how long connections may outlive their token'),
}

interface Filling {
  readonly variables: Variables
  readonly problems: Problems
  /** Each is a client, too. */
  readonly tokens: Readonly<Record<string, unknown>>
}

/** The settings with the variables of the environment in them. Adds what is wrong with them to the problems. */
export function accessWith(given: AccessSettings, filling: Filling): AccessSettings {
  const { variables, problems } = filling
  const issuers = given.issuers?.map((each, at) => {
    const path = ['access', 'issuers', at]
    const fill = (value: string, field: string): string => variables.in(value, [...path, field])
    const { issuer, audience, jwksUri } = each
    return {
      ...each,
      issuer: fill(issuer, 'issuer'),
      ...(audience !== undefined && {
        audience: typeof audience === 'string' ? fill(audience, 'audience') : audience.map((one) => fill(one, 'audience')),
      }),
      ...(jwksUri !== undefined && { jwksUri: fill(jwksUri, 'jwksUri') }),
    }
  })
  const { clients } = given
  const settings = { ...given, ...(issuers && { issuers }), ...(clients && { clients: clientsWith(clients, filling) }) }
  for (const [path, message] of [...mistakesIn(settings), ...misspeltScopes(settings)]) {
    if (!problems.has(['access', ...path])) problems.add(['access', ...path], message)
  }
  return settings
}

/** Clients with the secrets that they have. */
function clientsWith(clients: Readonly<Record<string, ClientSettings>>, { variables, problems, tokens }: Filling) {
  return Object.fromEntries(
    Object.entries(clients).map(([name, given]) => {
      const path = ['access', 'clients', name]
      const secret = given.secret === undefined ? undefined : variables.in(given.secret, [...path, 'secret'])
      const client = secret === undefined ? given : { ...given, secret }
      const mistake = problems.has([...path, 'secret']) ? undefined : mistakeIn(name, client, tokens)
      if (mistake !== undefined) problems.add(path, mistake)
      return [name, client]
    }),
  )
}

/** Words of one's own are for one's own agents. One that is nearly a word of ours would silently allow nothing. */
function misspeltScopes({ issuers = [], agents = {}, clients = {} }: AccessSettings): Mistake[] {
  return [
    ...issuers.flatMap(({ scopes = [] }, at) =>
      isList(scopes)
        ? misspelt(scopes, ['issuers', at, 'scopes'])
        : Object.entries(scopes).flatMap(([word, list]) => misspelt(list, ['issuers', at, 'scopes', word])),
    ),
    ...misspelt(agents.scopes ?? [], ['agents', 'scopes']),
    ...Object.entries(clients).flatMap(([name, { scopes = [] }]) => misspelt(scopes, ['clients', name, 'scopes'])),
  ]
}

function misspelt(words: readonly string[], path: readonly (string | number)[]): Mistake[] {
  return words.flatMap((word, at): Mistake[] => {
    const near = SCOPES.includes(word) || word.startsWith('host:') ? undefined : nearest(word, SCOPES)
    return near === undefined ? [] : [[[...path, at], `is "${word}", which allows nothing: did you mean "${near}"?`]]
  })
}
