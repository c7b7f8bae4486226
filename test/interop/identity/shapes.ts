/** What Keycloak, Entra and Auth0 publish and issue: their paths, their keys, their headers and their claims. */
import type { JWK } from 'jose'
import { now, type Pair } from '../../identity/support.ts'

/** Times as every provider writes them. */
const times = () => ({ iat: now(), exp: now() + 300 })
const TENANT = '8f0f5b1c-2a3d-4c5e-9b7a-0d1e2f3a4b5c'
const APP = '99999999-8888-7777-6666-555555555555'
const API = '11111111-2222-3333-4444-555555555555'

type Claims = Readonly<Record<string, unknown>>

/** One claim set for each case: who calls with it, or why it is refused. */
interface Case {
  readonly name: string
  readonly claims: (issuer: string) => Claims
  readonly header?: Readonly<Record<string, unknown>>
  readonly gives?: { readonly id: string; readonly tenant: string; readonly scopes: readonly string[] }
  readonly refused?: string
}

export interface Shape {
  /** The heading of its config in docs/identity.md. */
  readonly name: string
  readonly issuer: (base: string) => string
  /** Documents by path. */
  readonly published: (base: string, pair: Pair) => Readonly<Record<string, object>>
  readonly cases: readonly Case[]
}

/** A key as certificates make it: with members that only other software needs. */
const certified = ({ jwk }: Pair, more: object = {}): object => ({
  ...jwk,
  x5c: ['MIICmzCCAYMCBgF'],
  x5t: 'nOo3ZDrODXEK1jKWhXslHR_KXEg',
  ...more,
})
const bare = ({ alg: _, ...jwk }: JWK): object => jwk

const KEYCLOAK_REALM = '/realms/main'
const keycloakUser = (issuer: string): Claims => ({
  ...times(),
  auth_time: now(),
  jti: 'onrtac:5d5a4b0e-7c8f-4d0f-9f58-2c6d6a5b0c11',
  iss: issuer,
  aud: ['uamp', 'account'],
  sub: 'f:1c9a:alice',
  typ: 'Bearer',
  azp: 'webapp',
  sid: '0b9b6a44-6c52-4b0c-9c8f-fd1b8b0c0e55',
  acr: '1',
  'allowed-origins': ['https://app.example'],
  realm_access: { roles: ['offline_access', 'uma_authorization', 'default-roles-main', 'agent-reader'] },
  resource_access: { uamp: { roles: ['agent-user'] }, account: { roles: ['manage-account', 'view-profile'] } },
  scope: 'openid profile email',
  email_verified: true,
  preferred_username: 'alice',
})

const keycloak: Shape = {
  name: 'Keycloak',
  issuer: (base) => base + KEYCLOAK_REALM,
  published: (base, pair) => {
    const issuer = base + KEYCLOAK_REALM
    const keys = `${KEYCLOAK_REALM}/protocol/openid-connect/certs`
    const { kid: _, ...key } = pair.jwk
    return {
      [`${KEYCLOAK_REALM}/.well-known/openid-configuration`]: {
        issuer,
        authorization_endpoint: `${issuer}/protocol/openid-connect/auth`,
        token_endpoint: `${issuer}/protocol/openid-connect/token`,
        jwks_uri: base + keys,
        grant_types_supported: ['authorization_code', 'client_credentials', 'refresh_token'],
        id_token_signing_alg_values_supported: ['RS256', 'HS256', 'EdDSA'],
      },
      // Beside the key that signs there is one that encrypts.
      [keys]: { keys: [{ ...key, kid: 'for-encryption', alg: 'RSA-OAEP', use: 'enc' }, certified(pair)] },
    }
  },
  cases: [
    { name: 'a person', claims: keycloakUser, gives: { id: 'f:1c9a:alice', tenant: 'default', scopes: ['read', 'write'] } },
    {
      name: 'a service account',
      claims: (issuer) => ({
        ...keycloakUser(issuer),
        sub: '6a0d',
        azp: 'robot',
        client_id: 'robot',
        preferred_username: 'service-account-robot',
        realm_access: undefined,
      }),
      gives: { id: '6a0d', tenant: 'default', scopes: ['write'] },
    },
    {
      name: 'an administrator of the realm',
      claims: (issuer) => ({ ...keycloakUser(issuer), realm_access: { roles: ['admin', 'operate', '*'] }, resource_access: {} }),
      gives: { id: 'f:1c9a:alice', tenant: 'default', scopes: [] },
    },
    {
      name: 'an ID token',
      claims: (issuer) => ({ ...keycloakUser(issuer), typ: 'ID', aud: 'uamp', at_hash: 'x' }),
      refused: 'This is not an access token',
    },
    {
      name: 'a refresh token',
      claims: (issuer) => ({ ...keycloakUser(issuer), typ: 'Refresh' }),
      refused: 'This is not an access token',
    },
    {
      name: 'without the audience mapper',
      claims: (issuer) => ({ ...keycloakUser(issuer), aud: 'account' }),
      refused: 'The token is for another server',
    },
    {
      name: 'of another realm',
      claims: (issuer) => ({ ...keycloakUser(issuer), iss: `${issuer}2` }),
      refused: 'This server does not believe the issuer of the token',
    },
  ],
}

const entraBase = (issuer: string): Claims => ({
  ...times(),
  nbf: now(),
  aud: API,
  iss: issuer,
  aio: 'AXQAi/8TAAAA',
  oid: '3d2c1b0a-9f8e-7d6c-5b4a-392817160504',
  rh: '0.AAAA',
  sub: 'pairwise-sub',
  tid: TENANT,
  uti: 'kX2yq',
  ver: '2.0',
})
const entraApp: Claims = { azp: APP, azpacr: '1' }

const entra: Shape = {
  name: 'Entra',
  issuer: (base) => `${base}/${TENANT}/v2.0`,
  published: (base, pair) => ({
    [`/${TENANT}/v2.0/.well-known/openid-configuration`]: {
      token_endpoint: `${base}/${TENANT}/oauth2/v2.0/token`,
      token_endpoint_auth_methods_supported: ['client_secret_post', 'private_key_jwt', 'client_secret_basic'],
      jwks_uri: `${base}/${TENANT}/discovery/v2.0/keys`,
      response_types_supported: ['code', 'id_token', 'code id_token', 'id_token token'],
      issuer: `${base}/${TENANT}/v2.0`,
      tenant_region_scope: 'EU',
      cloud_instance_name: 'microsoftonline.com',
    },
    // No `alg`, but an `issuer`.
    [`/${TENANT}/discovery/v2.0/keys`]: {
      keys: [{ ...certified({ ...pair, jwk: bare(pair.jwk) as JWK }), issuer: `${base}/${TENANT}/v2.0` }],
    },
  }),
  cases: [
    {
      name: 'a person',
      claims: (issuer) => ({
        ...entraBase(issuer),
        ...entraApp,
        name: 'Alice',
        preferred_username: 'alice@example.com',
        scp: 'Agents.Call User.Read',
      }),
      gives: { id: '3d2c1b0a-9f8e-7d6c-5b4a-392817160504', tenant: TENANT, scopes: ['call'] },
    },
    {
      name: 'a program',
      claims: (issuer) => ({ ...entraBase(issuer), ...entraApp, idtyp: 'app', roles: ['Agents.Call.All'] }),
      gives: { id: '3d2c1b0a-9f8e-7d6c-5b4a-392817160504', tenant: TENANT, scopes: ['call', 'tool'] },
    },
    {
      name: 'a person with a role',
      claims: (issuer) => ({ ...entraBase(issuer), ...entraApp, scp: 'Agents.Call', roles: ['Agents.Call.All', 'admin'] }),
      gives: { id: '3d2c1b0a-9f8e-7d6c-5b4a-392817160504', tenant: TENANT, scopes: ['call', 'tool'] },
    },
    {
      // The app that signs people in may be the API itself, and need not send a nonce.
      name: 'an ID token for the same app',
      claims: (issuer) => ({ ...entraBase(issuer), name: 'Alice', preferred_username: 'alice@example.com' }),
      refused: 'This is not an access token',
    },
    {
      name: 'an ID token for the same app, with roles',
      claims: (issuer) => ({ ...entraBase(issuer), name: 'Alice', roles: ['Agents.Call.All'] }),
      refused: 'This is not an access token',
    },
    {
      name: 'without a tenant',
      claims: (issuer) => ({ ...entraBase(issuer), ...entraApp, scp: 'Agents.Call', tid: undefined }),
      refused: 'The token lacks the claim that names its tenant',
    },
    {
      name: 'for Microsoft Graph',
      claims: (issuer) => ({ ...entraBase(issuer), ...entraApp, scp: 'User.Read', aud: '00000003-0000-0000-c000-000000000000' }),
      refused: 'The token is for another server',
    },
  ],
}

const auth0Base = (issuer: string): Claims => ({
  ...times(),
  iss: issuer,
  sub: 'auth0|64f1c2',
  aud: ['https://agents.example', `${issuer}userinfo`],
  azp: 'kJ3xQ',
  scope: 'openid profile',
  'https://agents.example/org': 'acme',
  permissions: ['call:agents', 'read:agents', 'delete:everything'],
})

const auth0: Shape = {
  name: 'Auth0',
  issuer: (base) => `${base}/`,
  published: (base, pair) => ({
    '/.well-known/openid-configuration': {
      issuer: `${base}/`,
      authorization_endpoint: `${base}/authorize`,
      token_endpoint: `${base}/oauth/token`,
      jwks_uri: `${base}/.well-known/jwks.json`,
      id_token_signing_alg_values_supported: ['HS256', 'RS256', 'PS256'],
    },
    '/.well-known/jwks.json': { keys: [certified(pair)] },
  }),
  cases: [
    { name: 'a person', claims: auth0Base, gives: { id: 'auth0|64f1c2', tenant: 'acme', scopes: ['call', 'read'] } },
    {
      name: 'a program',
      claims: (issuer) => ({
        ...auth0Base(issuer),
        sub: 'kJ3xQ@clients',
        aud: 'https://agents.example',
        gty: 'client-credentials',
        scope: 'call:agents',
        permissions: ['call:agents'],
      }),
      gives: { id: 'kJ3xQ@clients', tenant: 'acme', scopes: ['call'] },
    },
    {
      name: 'without RBAC',
      claims: (issuer) => ({ ...auth0Base(issuer), permissions: undefined }),
      gives: { id: 'auth0|64f1c2', tenant: 'acme', scopes: [] },
    },
    {
      name: 'an ID token, of an operator who named the app as the audience',
      claims: (issuer) => ({ ...times(), iss: issuer, sub: 'auth0|64f1c2', aud: 'https://agents.example', name: 'Alice', sid: 'x' }),
      refused: 'This is not an access token',
    },
    {
      name: 'of the profile RFC 9068, which the config does not expect',
      claims: (issuer) => ({ ...auth0Base(issuer), client_id: 'kJ3xQ', jti: '1' }),
      header: { typ: 'at+jwt' },
      refused: 'The token is of the type "at+jwt", and must be "jwt"',
    },
  ],
}

export const SHAPES = [keycloak, entra, auth0]
