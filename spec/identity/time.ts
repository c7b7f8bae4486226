/** How long credentials count: tokens of sessions, sockets and streams. */
import { identity } from '../requirement.ts'

export const identityTime = identity('tokens in time', {
  'identity:time:session-token': ['UAMP events §10.3', 'session.create.token, also inside session, makes the session its owner’s alone.'],
  'identity:time:announced': [
    'expiry',
    'When a session’s token expires, its client is told by session.error: unauthorized, token_expired, and how long the grace is.',
  ],
  'identity:time:detached': [
    'expiry',
    'After the grace the session ends on this connection only, by session.end with token_expired. It stays stored, and a new token resumes it.',
  ],
  'identity:time:others': ['expiry', 'Other sessions on the same socket are not affected.'],
  'identity:time:refreshed': [
    'UAMP events §10.3',
    'session.update with a newer token of the same principal moves the expiry, for one session or, without a session id, for the connection.',
  ],
  'identity:time:refused': ['UAMP events §10.3', 'session.update with a token of somebody else is refused, and changes nothing.'],
  'identity:time:sockets': ['expiry', 'A socket of any other protocol is closed with 4401 and token_expired after the grace.'],
  'identity:time:streams': ['expiry', 'A streamed answer ends after the grace, with the error of its protocol if it has one.'],
  'identity:time:never': ['expiry', 'Credentials that never expire end nothing.'],
  'identity:time:revoked': ['revocation', 'What goes on by revoked credentials ends at once, and nothing of anybody else.'],
  'identity:time:client': [
    'UAMP client',
    'A client with a function for its token gets a new one before the old one expires, and nothing breaks off.',
  ],
  'identity:time:client-late': ['UAMP client', 'It also gets one when the server says that the token has expired, and when it comes back.'],
  'identity:time:client-failing': [
    'UAMP client',
    'If the function fails, the client tries again, ever less often, and gives up like without a connection.',
  ],
})

export const identityMatrix = identity('one decision', {
  'identity:matrix:listed': ['access', 'Every route and socket of the server has a verdict for every kind of caller.'],
  'identity:matrix:same': [
    'access',
    'Every route and socket decides in the same way about the same action and caller, in the form of its protocol.',
  ],
  'identity:matrix:methods': ['access', 'So does every method of A2A and ACP, and every type of event.'],
})
