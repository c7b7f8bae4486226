import type { Purpose } from '../../core/ports/keys.ts'
import type { Call, Host, HttpRoute, Transport } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { fingerprint } from '../../protocol/fingerprint.ts'
import { namesTag } from '../../wire/json-document.ts'
import { AGENTS_PATH, agentUrl } from '../issuers.ts'
import type { AccessSettings } from '../settings.ts'
import { ASSERTION_ALGORITHMS } from './client-auth.ts'
import { clientsFrom, type ClientsOptions } from './clients.ts'
import { oauthRefusal } from './errors.ts'
import { FORM_BYTES } from './form.ts'
import { SCOPES } from './scope.ts'
import { EXCHANGE, TokenEndpoint } from './token-endpoint.ts'

export type IssuerOptions = ClientsOptions & Pick<AccessSettings, 'leewaySeconds'>

/** How long others keep keys and descriptions. The key that signs next is public long before it signs. */
const MAX_AGE_SECONDS = 300

/** OAuth 2.0 for the clients of this server: tokens, keys to verify them with, and where all that is. */
export function issuer({ leewaySeconds = 60, ...options }: IssuerOptions = {}): Transport {
  const clients = clientsFrom(options)
  return {
    name: 'issuer',
    serves: 'all',
    refusal: oauthRefusal,
    routes: (host) => {
      const endpoint = new TokenEndpoint({ host, clients, leewayMs: leewaySeconds * 1000 })
      return [
        document('/.well-known/jwks.json', () => jwks(host)),
        document('/.well-known/openid-configuration', (call) => described(host, call.root ? undefined : call.agent)),
        document('/.well-known/oauth-authorization-server', (call) => described(host, call.root ? undefined : call.agent)),
        // RFC 8414 §3.1: where the issuer has a path, it comes behind.
        document(`/.well-known/oauth-authorization-server${AGENTS_PATH}/:name`, (call) => described(host, call.params['name'])),
        post('/auth/token', host, (call) => endpoint.token(call)),
        post('/auth/revoke', host, (call) => endpoint.revoke(call)),
      ]
    },
  }
}

function post(path: string, host: Host, answer: (call: Call) => Promise<Response>): HttpRoute {
  const handle = async (_: Request, call: Call): Promise<Response> => {
    await host.started
    return answer(call)
  }
  return { method: 'POST', path, access: 'public', bodyBytes: FORM_BYTES, body: 'text', handle }
}

function document(path: string, make: (call: Call) => object | Promise<object>): HttpRoute {
  const handle = async ({ headers }: Request, call: Call): Promise<Response> => {
    const text = JSON.stringify(await make(call))
    const cached = { etag: `"${fingerprint(text)}"`, 'cache-control': `public, max-age=${MAX_AGE_SECONDS}` }
    const known = headers.get('if-none-match')
    if (known !== null && namesTag(known, cached.etag)) return new Response(null, { status: 304, headers: cached })
    return new Response(text, { headers: { ...cached, 'content-type': 'application/json' } })
  }
  return { method: 'GET', path, access: 'public', handle }
}

/** What is signed here, and checked with the keys that are public. */
const PUBLISHED = ['tokens', 'responses', 'cards'] satisfies Purpose[]

/**
 * The keys of every purpose. They are made now if nothing was signed yet: verifiers keep what they get for minutes, and would refuse the
 * first token, answer or card by a key that came later.
 */
async function jwks({ signer, started }: Host): Promise<object> {
  await started
  await Promise.all(PUBLISHED.map((purpose) => signer?.key(purpose)))
  return (await signer?.publicJwks()) ?? { keys: [] }
}

/** RFC 8414 §2 and OpenID Connect Discovery §3, as far as a server without sign-in pages has them. */
function described(host: Host, agent: string | undefined): object {
  const ownUrl = host.ownUrl()
  if (ownUrl === undefined) {
    throw new UampError('not_found', 'This server does not know its own URL, so it issues no tokens: its operator can set publicUrl')
  }
  if (agent !== undefined && host.agents.get(agent) === undefined) throw new UampError('not_found', 'There is no agent of that name here')
  const base = agent === undefined ? ownUrl : agentUrl(ownUrl, agent)
  const methods = ['client_secret_basic', 'client_secret_post', 'private_key_jwt']
  return {
    issuer: base,
    jwks_uri: `${base}/.well-known/jwks.json`,
    token_endpoint: `${base}/auth/token`,
    token_endpoint_auth_methods_supported: methods,
    token_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGORITHMS,
    revocation_endpoint: `${base}/auth/revoke`,
    revocation_endpoint_auth_methods_supported: methods,
    revocation_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGORITHMS,
    grant_types_supported: ['client_credentials', EXCHANGE],
    response_types_supported: ['token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256', 'EdDSA'],
    scopes_supported: SCOPES,
  }
}
