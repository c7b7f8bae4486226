/** What a server with a certificate promises, over HTTP/1.1 and HTTP/2. */
import { tls as rows } from './requirement.ts'

export const tlsListener = {
  ...rows('TLS listener', {
    'tls.version': ['Versions', 'Nothing older than TLS 1.3 is spoken.'],
    'tls.alpn': ['Versions', 'HTTP/2 and HTTP/1.1 have the same port: the client names what it speaks, and without a name it is HTTP/1.1.'],
    'tls.transports': ['Versions', 'Every protocol is spoken over both versions as without TLS: streams, WebSockets, resumption.'],
    'tls.https': ['Addresses', 'URLs in answers say https, whatever scheme the client writes into its request.'],
    'tls.mistakes': ['Certificates', 'A server that cannot use its files does not start, and says which option is wrong and what to do.'],
    'tls.reload': ['Certificates', 'New connections get a certificate that was replaced; those that are open go on.'],
    'tls.reload-broken': [
      'Certificates',
      'While the files are broken, or do not belong together, the old pair stays, and the log says so once.',
    ],
    'tls.client-optional': ['Client certificates', 'A client is asked for a certificate and may come without one.'],
    'tls.client-refused': [
      'Client certificates',
      'The connection of a client whose certificate does not verify is closed, and the log says why.',
    ],
    'tls.client-names': ['Client certificates', 'Access is told the thumbprint of a verified certificate, and the URIs among its names.'],
    'tls.h2c': [
      'Without TLS',
      'HTTP/2 without TLS is spoken where the operator asks for it, beside HTTP/1.1, on the loopback address only.',
    ],
    'tls.h2c-refused': ['Without TLS', 'Who speaks HTTP/2 without TLS to any other server is told why it does not answer.'],
  }),
  ...rows('RFC 8705', {
    'tls.bound-tokens': [
      '§3',
      'A token that is bound to a certificate is accepted on connections that have shown that certificate, and no other.',
    ],
  }),
  ...rows('RFC 8441', {
    'h2.websocket': ['§4', 'A WebSocket is opened by an extended CONNECT, and refused with the status that an upgrade gets.'],
    'h2.websocket-setting': ['§3', 'The server says that it takes extended CONNECT.'],
  }),
  ...rows('RFC 9113', {
    'h2.headers': ['§10.5.1', 'A request with too many or too large headers gets 431, or its stream is reset.'],
    'h2.body': ['§8.1', 'A body that is too large gets 413, and a request without a token gets its refusal before its body is read.'],
    'h2.request-time': ['§5.4.2', 'A request that does not come to its end in time gets 408.'],
    'h2.idle': ['§9.1', 'A connection without requests is closed, sooner if it has shown no token.'],
    'h2.streams': ['§5.1.2', 'A stranger may have eight streams at once, who shows a token a hundred.'],
    'h2.evicted': ['§9.1', 'When the server is full, the oldest connection of a stranger makes room.'],
    'h2.back-pressure': ['§5.2', 'An agent waits for a client that does not read.'],
    'h2.unread': [
      '§5.2.2',
      'A stream that nothing is read of is ended after the same time as over HTTP/1.1, and the others of its connection go on.',
    ],
    'h2.small-window': ['§6.9', 'A client that opens its window byte by byte counts as one that does not read.'],
    'h2.unread-bytes': ['§10.5', 'Unread answers count as memory of the caller, those of all streams together.'],
    'h2.rapid-reset': ['§10.5', 'A client that opens and resets streams over and over is disconnected.'],
    'h2.control-floods': ['§10.5', 'A client that floods with pings or settings is disconnected.'],
    'h2.noise': ['§10.5', 'A client that floods with windows, priorities, or frames that mean nothing is disconnected.'],
    'h2.continuations': ['§10.5.1', 'A client that never ends its headers is disconnected.'],
    'h2.goaway': ['§6.8', 'A server that stops says so, lets streams end within the time for it, and closes idle connections.'],
  }),
}
