/** Signed messages between organisations. */
import { envelope } from '../requirement.ts'

/** What is true of messages and signatures, wherever they come from. */
export const envelopes = envelope({
  'envelope:id': ['4, A.1', 'An id is a UUID of version 4, with or without urn:uuid:, in any case, and no other; it is signed as it came.'],
  'envelope:reply-to': ['4, A.1', 'reply_to and the ids of context follow the rule of ids.'],
  'envelope:time-form': ['4', 'An offset, a leap second, or a day that there is not, is refused.'],
  'envelope:from': ['4, A.1', 'from is a URI.'],
  'envelope:recipients': ['4, A.1', 'to names one URI or more, up to 64.'],
  'envelope:intents': ['4.1', 'An intent that is none of the ten is refused.'],
  'envelope:window-bounds': ['5, A.1', 'delta_window is a whole number from 1.'],
  'envelope:unknown-members': ['A.1', 'A member that the schema does not have is refused.'],
  'envelope:required': ['A.1', 'A message without one of its required members is refused.'],
  'envelope:ext-as-it-came': ['4, A.1', 'ext is an object of any content, which is signed as it came.'],
  'envelope:context-hash': ['4', 'The hash in context is that which the message is signed with.'],
  'envelope:canonical': [
    '4.2',
    'What is hashed is the message as it came without sig, with sorted keys at every depth and no white space.',
  ],
  'envelope:ambiguous-json': ['4.2', 'JSON that two readers may read differently is refused: a key that stands twice, a number too large.'],
  'envelope:hash-form': ['6.3', 'The payload of the signature is {"sha256": 64 hexadecimal digits}.'],
  'envelope:signature': ['6.3', 'A message without a signature, or with one that does not fit, is refused with 4.01.'],
  'envelope:detached': ['6.3', 'The signature is a detached JWS, and its payload is the hash that we compute.'],
  'envelope:attached': ['6.3', 'A signature with its payload is accepted if that is the hash that we compute.'],
  'envelope:algorithms': ['6.3', 'ES256 and EdDSA are accepted, and no other algorithm.'],
  'envelope:header': ['6.3', 'A signature whose header brings a key, or an address of one, is refused.'],
  'envelope:sender-key': [
    '6.3',
    'The key belongs to the sender, and is the one that kid names: a good signature of somebody else is refused.',
  ],
  'envelope:did-web': ['8', 'A did:web leads to the document of its host, and nowhere else.'],
  'envelope:document-keys': ['8', 'A key signs for a DID if the document of that DID lists it for signing, and no other key does.'],
  'envelope:signed-document': ['8, A.3', 'A manifest, or a hub, is a compact JWS whose kid is a key of its server.'],
  'envelope:capability-claims': ['6.2', 'A capability token names us, the sender or its key, what it allows, and when it ends.'],
  'envelope:encoding': ['4, A.1', 'A body may be base64 or compressed; what it grows to is bounded.'],
  'envelope:codes': ['9', 'Every error has a code, and every code a status of HTTP and of gRPC, and says whether to send again.'],
  'envelope:states': ['10', 'ask and subscribe begin, confirm, done, cancel and error end, and after the end nothing moves.'],
})

/** What a server does with them, over HTTP and WebSocket. */
export const servedEnvelopes = envelope({
  'envelope:refusals': ['4, 6.3', 'POST /v1/messages refuses what the form of a message, and its signature, rule out, with their codes.'],
  'envelope:answer-signature': ['6.3', 'The answer of this server is signed over its hash.'],
  'envelope:body-read': ['4', 'A body in base64, or compressed, reaches the agent as what it holds.'],
  'envelope:time': ['4', 'A message older or newer than five minutes is refused.'],
  'envelope:to': ['4', 'A message that does not name us in to is refused.'],
  'envelope:ask': ['4.1, 10', 'ask is accepted with 202 and the place of its stream.'],
  'envelope:inform': ['4.1', 'inform is accepted and opens no stream.'],
  'envelope:cancel': ['4.1, 10', 'cancel stops what it names; after the end it has no effect.'],
  'envelope:ext': ['4', 'ext reaches the agent.'],
  'envelope:did-document': ['8', 'The keys of this server are in /.well-known/did.json.'],
  'envelope:manifest': ['8, A.3', 'The manifest is a signed JWS as application/manifest+jws, and has the six members of its schema.'],
  'envelope:hub': ['8', 'The hub lists manifests and trust anchors, signed.'],
  'envelope:stream-id': ['4, C.1, C.2', 'A stream has the id that its sender chose, else one of ours.'],
  'envelope:stream-owner': ['6.2', 'A stream is read by its owner alone.'],
  'envelope:delta-order': ['5, A.2', 'Deltas are numbered from 0 without a gap, and end once: done, cancel or error.'],
  'envelope:sse': ['7', 'GET /v1/stream/{id} has one delta in each SSE event, whose id is its number.'],
  'envelope:resume': ['5, 9', 'Who comes back with Last-Event-ID gets the next delta, or 4.09 where that is gone.'],
  'envelope:window': ['5', 'No more than delta_window deltas are sent without being acknowledged.'],
  'envelope:acknowledge': ['5', 'progress acknowledges deltas, and more are sent.'],
  'envelope:websocket': ['7', 'Frames at /uamp/1/ws have four bytes of length, then JSON.'],
  'envelope:websocket-length': ['7', 'A frame whose length is wrong is refused, and nothing else is read of it.'],
  'envelope:authentication': ['6.2', 'A caller without a certificate and without a token is refused with 4.01.'],
  'envelope:sender-is-caller': ['6.2', 'Who authenticates as one and signs as another is refused with 4.03.'],
  'envelope:capability': ['6.2', 'A capability token for somebody else, or for something else, is refused with 4.03.'],
  'envelope:missing-seq': ['9', 'A delta without its number is 4.09.'],
  'envelope:too-large': ['9', 'A message that is too large is 4.13, and may not be sent again.'],
  'envelope:busy': ['9', 'Where there is no room the code is 5.04, with Retry-After.'],
  'envelope:retries': ['4', 'A message that comes twice has one effect; its id with other content is refused.'],
  'envelope:context': ['4', 'A context whose hash does not fit the message that it names is refused.'],
  'envelope:stream-hash': ['5, B', 'The end of a stream has the hash of its deltas, and the signed answer repeats it.'],
  'envelope:media-type': ['11', 'POST /v1/messages takes application/uamp+json, and refuses others with 415.'],
  'envelope:tls': ['6.1', 'Messages are taken over TLS 1.3 alone, but for tests on one machine.'],
})

/** What is not built yet. */
export const openEnvelopes = envelope(
  {
    'envelope:subscribe': ['4.1', 'subscribe opens a stream on which notify comes.'],
    'envelope:grpc': ['7', 'The service uamp.v1.Agent takes messages and streams deltas.'],
    'envelope:http3': ['7', 'The same paths are served over HTTP/3.'],
  },
  'envelope',
)
