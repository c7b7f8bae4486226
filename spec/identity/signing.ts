/** Signed answers: what a signature covers, who gets one, and what it proves. */
import { uampEvents, uampTransports } from '../requirement.ts'

export const signing = uampEvents('signing', {
  'uamp:signing:signature': ['6.7', 'response.done can carry an RS256 JWT as its signature.'],
  'uamp:signing:claims': ['6.7', 'The signature covers the request and the response by their hashes.'],
  'uamp:signing:asked': ['6.7', 'An answer is signed for a client that asks for it, in its session or its response, and for no other.'],
  'uamp:signing:complete': ['6.7', 'Only a complete answer is signed: one that failed or was cancelled is not.'],
  'uamp:signing:words': ['6.7', 'The hash of the response is that of its words; what is no text is covered by a hash of the output.'],
  'uamp:signing:kept': ['6.7', 'An answer that is read again has the signature that it had at first.'],
  'uamp:signing:agents-own': ['6.7', 'The signature of an agent elsewhere stays; that of the server is beside it.'],
  'uamp:signing:never-lost': ['6.7', 'An answer whose signature cannot be made goes out without one.'],
  'uamp:signing:own-address': ['6.7', 'A server that knows its address only from requests signs nothing.'],
  'uamp:signing:evidence': ['6.7', 'A signature is verified with the published keys; an old one counts, and is said to be old.'],
  'uamp:signing:forged': ['6.7', 'A signature by another key, of another kind, or of other words is not accepted.'],
})

export const signingTransports = uampTransports('signing', {
  'uamp-transports.signature-event': ['Response Signing', 'A signed completion is followed by the event response_signature.'],
  'uamp-transports.signature-realtime': ['Response Events', 'response.done of Realtime carries the signature of a signed response.'],
})
