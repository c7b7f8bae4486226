/** What it takes to issue tokens that others can trust, and to take them back. */
import { identity } from '../requirement.ts'

export const oauthIssuer = {
  ...identity('RFC 6749', {
    'oauth.client-credentials': ['§4.4', 'A client that proves who it is gets a token for itself, with its type, its life and its scope.'],
    'oauth.client-secret': ['§2.3.1', 'A client may show its secret by HTTP Basic, form-encoded or not, or in the body.'],
    'oauth.one-way': ['§2.3', 'A client that proves who it is in two ways at once is refused.'],
    'oauth.no-store': ['§5.1', 'No answer of a token endpoint may be kept by a cache.'],
    'oauth.invalid-client': ['§5.2', 'A client that has not proved who it is gets 401, invalid_client and a challenge.'],
    'oauth.errors': ['§5.2', 'Every other mistake gets 400 and the error of its kind.'],
    'oauth.repeated': ['§3.2', 'A field that comes twice is refused, and an empty one is not there.'],
    'oauth.scope': ['§3.3', 'A client gets no scope that is not its own, and all of its own if it asks for none.'],
  }),
  ...identity('RFC 9068', {
    'oauth.at-jwt': ['§2', 'An access token is of the type at+jwt and has iss, exp, aud, sub, client_id, iat and jti.'],
  }),
  ...identity('AOAuth 1.0', {
    'aoauth.target': ['Tokens', 'A token is for the agent that `target` names: @name, a name or a URL.'],
    'aoauth.life': ['Tokens', 'A token lives for five minutes.'],
    'aoauth.algorithms': ['Tokens', 'Tokens are signed with RS256 or EdDSA.'],
    'aoauth.agent-url': ['Tokens', 'Issuer, agent_path, a slash and the subject make the URL of an agent.'],
    'aoauth.per-agent': ['Discovery', 'Each agent has keys, descriptions and a token endpoint of its own.'],
    'aoauth.openid-configuration': ['Discovery', 'openid-configuration names the keys and the token endpoint.'],
  }),
  ...identity('RFC 8414', {
    'oauth.metadata': ['§2', 'The description of the server names its issuer, which is its configured URL and never that of a request.'],
    'oauth.metadata-path': ['§3.1', 'The description of an issuer with a path is also found where the path comes behind.'],
  }),
  ...identity('RFC 7517', {
    'oauth.jwks': [
      '§5',
      'Tokens are verified with the published keys, of which none has a private part; caches may ask whether they changed.',
    ],
  }),
  ...identity('RFC 7523', {
    'oauth.private-key-jwt': ['§3', 'A client may sign who it is: iss and sub are its name, aud is this server, exp is near.'],
    'oauth.assertion-once': ['§3', 'An assertion is used once.'],
  }),
  ...identity('RFC 8693', {
    'oauth.exchange': ['§2', 'A token is exchanged for one of the same subject; act says who acts.'],
    'oauth.exchange-narrows': ['§1.1', 'The new token has no more scope, no longer life and no wider audience than its owner may give.'],
    'oauth.exchange-act': ['§4.1', 'Those who acted before are within act, and no more than eight.'],
    'oauth.exchange-invalid': ['§2.2.2', 'A subject or actor token that is not good is invalid_request.'],
  }),
  ...identity('RFC 7009', {
    'oauth.revoke': ['§2', 'A client takes its own token back; it is refused from then on.'],
    'oauth.revoke-unknown': ['§2.2', 'A token that was never good is answered as one that is revoked.'],
    'oauth.revoke-other': ['§2.1', "Another client's token is not revoked."],
  }),
}

export const revocation = identity('uamp', {
  'identity.revoke-token': ['revocation', 'A revoked token is refused at once, also after a restart.'],
  'identity.revoke-key': ['revocation', 'All that a revoked key has signed is refused at once, and the key is no longer published.'],
  'identity.revoke-principal': ['revocation', 'A revoked principal is refused at once, with whatever credentials, until it is restored.'],
  'identity.revoke-cuts': ['revocation', 'Open connections of what is revoked are cut, and no others.'],
  'identity.keys-running': ['keys', 'Keys are listed, rotated and revoked while a server runs, and while none does.'],
})
