/** What a server checks of a token before it believes it. */
import { identity } from '../requirement.ts'

export const accessTokens = identity('RFC 8725 and RFC 9068', {
  'verify.alg': ['8725 §3.1', 'A token without a signature, or with a symmetric one, is refused.'],
  'verify.own-key': ['8725 §3.10', 'Keys and addresses of keys in the header of a token are never used, and `crit` is refused.'],
  'verify.kid': ['8725 §3.10', 'A `kid` only names a key: one with a path or a query in it finds nothing.'],
  'verify.typ': ['9068 §4', 'A token of another type than `at+jwt`, or than its issuer is configured for, is refused; so is an ID token.'],
  'verify.aud': ['9068 §4', 'A token for another server, or for nobody, is refused.'],
  'verify.agent': ['9068 §4', 'A token for one agent is refused by the others of the same server.'],
  'verify.time': ['7519 §4.1', 'A token that has ended, has not begun, or was issued in the future is refused, with a leeway for clocks.'],
  'verify.claims': ['9068 §2.2', 'A token without an issuer, an owner, an id or an end is refused.'],
  'verify.form': ['8725 §3.2', 'There is one way to write a token: changed, padded, nested or overlong ones are refused.'],
  'verify.purpose': ['8725 §2.8', 'What the server signs for another purpose is no token.'],
  'verify.challenge': ['6750 §3', 'A refusal says why in WWW-Authenticate, and never repeats the token, nor does the log.'],
  'verify.throttle': ['UAMP events §2.1', 'Wrong tokens are throttled per address, and valid ones work all the while.'],
  'verify.provider': [
    'OpenID Connect Discovery §4',
    'The access token of a configured provider is accepted, and its claims say who calls.',
  ],
  'verify.owner-assertion': ['UAMP events §2.1', 'An owner assertion alone admits nobody, and beside a token it changes nothing.'],
})

export const issuerKeys = identity('RFC 7517 and RFC 8414', {
  'keys.duplicate': ['7517 §4.5', 'Two keys of one name are both refused.'],
  'keys.rotation': ['7517 §5', 'A new key of an issuer is found when its first token comes, and no token fails.'],
  'keys.cache': ['9111 §5.2', 'Keys are kept for as long as their server says, within bounds, and asked for by ETag.'],
  'keys.unreadable': [
    '8414 §3',
    'Keys behind a redirect, or that are huge, late or malformed, are refused; other issuers are not affected.',
  ],
  'keys.negative': ['8414 §6', 'An issuer whose keys could not be read is left alone for a minute.'],
  'keys.another': ['8414 §3.3', 'A document that speaks for another issuer, or names keys elsewhere, is refused.'],
  'keys.no-call': ['8725 §3.10', 'A token of an issuer that the rules do not accept causes no call.'],
  'keys.strangers': ['8725 §3.10', 'Strangers who make issuers up are throttled.'],
})

export const agentTrust = identity('AOAuth 1.0', {
  'trust.order': ['trust', 'Deny wins, then trusted issuers, then allow; without rules no agent of others is believed.'],
  'trust.reserved': ['scopes', 'Others cannot give `admin`, `operate`, `host`, `platform` or `service:*`.'],
  'trust.labels': ['scopes', 'Labels count only from trusted issuers.'],
})

export const proofOfPossession = identity('RFC 9449 and RFC 8705', {
  'dpop.accepted': ['9449 §7.1', 'A bound token with its proof is accepted, on HTTP and on upgrades.'],
  'dpop.bearer': ['9449 §7.2', 'A bound token without a proof is refused, however it comes.'],
  'dpop.proof': ['9449 §4.3', 'A proof of another key, token, method, URL, time or type is refused.'],
  'dpop.once': ['9449 §11.1', 'A proof counts once, also after a restart.'],
  'dpop.nonce': ['9449 §9', 'A server that wants a nonce says so, and gives it.'],
  'mtls.bound': ['8705 §3', 'A token for the holder of a certificate needs a connection that shows it.'],
  'mtls.proxy': ['9440 §2', 'The certificate that a proxy tells counts only from a trusted one, and only if the operator says so.'],
})
