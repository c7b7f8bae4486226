// @ts-check
import { TOKENS } from '../tokens.js'
import { entry, get, post } from './entry.js'

const PUBLIC = /** @type {const} */ ({ form: 'oauth', isPublic: true })

const EXCHANGE = {
  grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
  subject_token: 'a.b.c',
  subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
  target: '@demo',
}
const ASSERTION = {
  grant_type: 'client_credentials',
  client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
  client_assertion: 'eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJhbGljZSIsInN1YiI6ImFsaWNlIn0.c2lnbmF0dXJl',
}

/** By a client that the server knows, if it wants tokens at all. @param {string} target @param {Readonly<Record<string, string>>} fields */
const form = (target, fields) =>
  post(target, Buffer.from(new URLSearchParams({ client_id: 'alice', client_secret: TOKENS.alice, ...fields }).toString()), {
    'content-type': 'application/x-www-form-urlencoded',
  })

/** The routes that issue tokens. @type {readonly import('./entry.js').Entry[]} */
export const oauth = [
  entry('GET /.well-known/jwks.json', get('/.well-known/jwks.json'), PUBLIC),
  entry('GET /.well-known/openid-configuration', get('/.well-known/openid-configuration'), PUBLIC),
  entry('GET /.well-known/oauth-authorization-server', get('/.well-known/oauth-authorization-server'), PUBLIC),
  entry('GET /.well-known/oauth-authorization-server/agents/:name', get('/.well-known/oauth-authorization-server/agents/demo'), PUBLIC),
  entry('POST /auth/token', form('/auth/token', { grant_type: 'client_credentials', target: '@demo', scope: 'read call' }), PUBLIC),
  entry('POST /auth/token', form('/auth/token', EXCHANGE), PUBLIC),
  entry('POST /auth/token', form('/auth/token', ASSERTION), PUBLIC),
  entry('POST /auth/revoke', form('/auth/revoke', { token: 'a.b.c', token_type_hint: 'access_token' }), PUBLIC),
]
