// @ts-check
import { deflateSync, gzipSync } from 'node:zlib'
import { FORGED, PROOFS } from './payments.js'

/** @typedef {import('../../support/random.js').Random} Random */

/**
 * A request before it is bytes.
 *
 * @typedef {object} Wire
 * @property {string} method
 * @property {string} target
 * @property {string} version
 * @property {[string, string][]} headers without those that frame the body
 * @property {Buffer} body
 * @property {'length' | 'chunked' | Buffer} framing or a head of one's own for the body, which then follows as it is
 * @property {'whole' | 'slow' | 'abort' | 'half' | 'stall'} pace how the bytes are sent
 * @property {Buffer | undefined} after what follows on the same connection, whether or not an answer has come
 * @property {boolean} twice the same request once more, at once
 * @property {boolean} loose it may not be what its entry asked for any more: any protocol's refusal will do
 * @property {boolean} broken it need not be answered: closing the connection will do
 */

const PAYMENT_HEADERS = ['x-payment', 'payment-signature', 'x-payment-token']
const CONTENT_TYPES = [
  'text/plain',
  'application/xml',
  'application/json; charset=utf-16',
  'application/json; charset=nonsense',
  'application/json;;;',
  'application/JSON',
  'multipart/form-data; boundary=x',
  'application/x-www-form-urlencoded',
  'application/octet-stream',
  'application/a2a+json',
  `application/json; x=${'y'.repeat(4000)}`,
  '',
]
const ACCEPTS = [
  'text/event-stream',
  'application/json',
  '*/*',
  'image/png',
  'text/event-stream;q=0',
  ',,,',
  'application/vnd.ag-ui.event+proto',
  'a/b, '.repeat(500),
]
const METHODS = [
  'GET',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'HEAD',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'PROPFIND',
  'get',
  'G\u0000T',
  'X'.repeat(200),
  '',
]
const POSITIONS = [
  '0',
  '-1',
  '1',
  '999999999999',
  '1e9',
  '18446744073709551616',
  'head',
  'NaN',
  '',
  '\u00ff',
  '1.5',
  ' 7',
  'x'.repeat(3000),
  '1:2:3',
]
/** @type {readonly [string, string][]} */
const HEADERS = [
  ['x-session-id', '$foreignSession'],
  ['x-session-id', '$response'],
  ['a2a-version', '1.0'],
  ['a2a-version', '0.3'],
  ['a2a-version', '99'],
  ['a2a-extensions', 'https://example.invalid/x, '.repeat(50)],
  ['acp-connection-id', '$connection'],
  ['acp-session-id', '$session'],
  ['range', 'bytes=0-0,1-1,2-2'],
  ['range', 'bytes=99999999999999999999-'],
  ['range', 'bytes=-0'],
  ['if-range', '"x"'],
  ['if-none-match', '*'],
  ['cookie', 'a=b; '.repeat(100)],
  ['authorization', 'Basic dGhlOnJpZ2h0'],
  ['authorization', `Bearer ${'x'.repeat(5000)}`],
  ['authorization', 'Bearer'],
  ['authorization', 'Bearer a b c'],
  ['x-api-key', 'x'],
  ['x-payment', 'e30='],
  ['x-payment', '@@@'],
  ['payment-signature', 'eyJ4IjpbXX0='],
  ...[...FORGED, ...PROOFS].flatMap((value) => PAYMENT_HEADERS.map((name) => /** @type {[string, string]} */ ([name, value]))),
  ['openai-beta', 'realtime=v1'],
  ['origin', 'https://evil.example'],
  ['origin', 'null'],
  ['sec-fetch-site', 'cross-site'],
  ['access-control-request-method', 'POST'],
  ['x-forwarded-for', '1.2.3.4, ::1, nonsense'],
  ['x-forwarded-host', 'evil.example'],
  ['forwarded', 'for="[::1]:x";host=;;proto=gopher'],
  ['x-http-method-override', 'DELETE'],
  ['te', 'trailers'],
  ['trailer', 'content-length'],
  ['connection', 'close, x-session-id'],
  ['connection', 'upgrade'],
  ['upgrade', 'h2c'],
  ['expect', '100-continue'],
  ['expect', 'the-unexpected'],
  ['accept-encoding', 'br;q=1, gzip, identity;q=0'],
]
const HOSTS = [
  'evil.example',
  '',
  'localhost:99999',
  '127.0.0.1\u0000',
  '[::1',
  'a'.repeat(300),
  '127.0.0.1, evil.example',
  'user@localhost',
  '%00',
]
const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nhost: localhost\r\n\r\n'
const HEALTH = Buffer.from('GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n')

/** Does one thing to a request. @param {Wire} wire is changed @param {Random} random */
export function mutateHttp(wire, random) {
  wire.loose = true
  random.pick([
    target,
    target,
    query,
    header,
    header,
    headers,
    position,
    accept,
    contentType,
    method,
    encoding,
    framing,
    framing,
    smuggle,
    pipeline,
    pace,
    host,
    version,
  ])(wire, random)
}

/** @param {Wire} wire @param {Random} random */
function target(wire, random) {
  const path = wire.target
  const at = random.whole(0, path.length)
  wire.target = random.pick([
    () => path.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
    () => path.replaceAll('/', '%2f'),
    () => path.replaceAll('/', '//'),
    () => path.replaceAll('/', '\\'),
    () => `${path.slice(0, at)}/../${path.slice(at)}`,
    () => `${path.slice(0, at)}%2e%2e%2f${path.slice(at)}`,
    () => `${path.slice(0, at)}%${path.slice(at)}`,
    () => `${path.slice(0, at)}%ff%fe${path.slice(at)}`,
    () => `${path.slice(0, at)}%00${path.slice(at)}`,
    () => `${path.slice(0, at)}%u2028${path.slice(at)}`,
    () => `${path.slice(0, at)};x=y${path.slice(at)}`,
    () => `${path}/`,
    () => `/${path}`,
    () => `${path}/${'x'.repeat(random.pick([100, 7000, 9000]))}`,
    () => `${path}${'/x'.repeat(3000)}`,
    () => `http://127.0.0.1${path}`,
    () => `http://evil.example${path}`,
    () => `/agents/demo${path}`,
    () => `/agents/nobody${path}`,
    () => `/agents/%64emo${path}`,
    () => `/agents/__proto__${path}`,
    () => `/agents//${path}`,
    () => `${path.slice(0, at)}\u00e9${path.slice(at)}`,
    () => path.toUpperCase(),
    () => path.slice(1),
    () => '*',
    () => path.slice(0, at),
    () =>
      path.replace(
        /[^/]*$/,
        random.pick(['__proto__', 'constructor', '%5f%5fproto%5f%5f', ':id', '*', '.', '..', '$task', '$foreignResponse']),
      ),
  ])()
  // A space or nothing at all is no request any more.
  wire.broken ||= wire.target === '' || /[^\x21-\x7e]/.test(wire.target)
}

/** @param {Wire} wire @param {Random} random */
function query(wire, random) {
  const name = random.pick([
    'session_id',
    'after',
    'model',
    'agent',
    'resume',
    'limit',
    'extensions',
    'include',
    'stream',
    'pageToken',
    'pageSize',
    'starting_after',
    'order',
    '__proto__',
    'token',
  ])
  const value = random.pick([
    '',
    '0',
    '-1',
    'x',
    '%00',
    '%ff',
    '1e99',
    '$session',
    '$foreignSession',
    'true',
    '999999999999',
    'x'.repeat(5000),
    '%5B%5D',
    'a&a=b',
  ])
  wire.target += `${wire.target.includes('?') ? '&' : '?'}${`${name}=${value}&`.repeat(random.pick([1, 2, 200])).slice(0, 7000)}`
}

/** @param {Wire} wire @param {Random} random */
function header(wire, random) {
  const [name, value] = random.pick(HEADERS)
  if (random.chance(0.5)) wire.headers = wire.headers.filter(([given]) => given !== name)
  wire.headers.push([name, value])
  // Node answers what it does not expect by itself, and an upgrade to something else is not answered as HTTP.
  wire.broken ||= name === 'expect' || name === 'upgrade' || value === 'upgrade'
}

/** @param {Wire} wire @param {Random} random */
function headers(wire, random) {
  random.pick([
    () =>
      wire.headers.push(
        ...Array.from({ length: random.pick([50, 99, 150, 1500]) }, (_, n) => /** @type {[string, string]} */ ([`x-${n}`, 'y'])),
      ),
    () => wire.headers.push(['x-long', 'y'.repeat(random.pick([1000, 15_000, 20_000]))]),
    () => wire.headers.push(['x bad', 'y']),
    () => wire.headers.push(['x-fold', 'a\r\n b']),
    () => wire.headers.push(['x-control', '\u0001\u007f']),
    () => wire.headers.push(['x-nul', 'a\u0000b']),
    () => wire.headers.push(['', 'y']),
    () => wire.headers.push(['x-\u00ff', '\u00ff\u00fe']),
    () => (wire.headers = wire.headers.map(([name, value]) => [name.toUpperCase(), value])),
    () => (wire.headers = wire.headers.flatMap((pair) => [pair, pair])),
    () => (wire.headers = wire.headers.map(([name, value]) => [name, value.slice(0, random.whole(0, value.length))])),
    () => wire.headers.splice(random.whole(0, wire.headers.length), 1),
  ])()
  wire.broken = true
}

/** @param {Wire} wire @param {Random} random */
function position(wire, random) {
  wire.headers.push(['last-event-id', random.pick(POSITIONS)])
}

/** @param {Wire} wire @param {Random} random */
function accept(wire, random) {
  wire.headers = [...wire.headers.filter(([name]) => name !== 'accept'), ['accept', random.pick(ACCEPTS)]]
}

/** @param {Wire} wire @param {Random} random */
function contentType(wire, random) {
  wire.headers = [...wire.headers.filter(([name]) => name !== 'content-type'), ['content-type', random.pick(CONTENT_TYPES)]]
}

/** @param {Wire} wire @param {Random} random */
function method(wire, random) {
  wire.method = random.pick(METHODS)
  // Names that HTTP does not have are not parsed, and nobody tunnels here.
  wire.broken ||= !/^(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|PROPFIND)$/.test(wire.method)
}

/** @param {Wire} wire @param {Random} random */
function encoding(wire, random) {
  const [name, body] = random.pick([
    () => ['gzip', gzipSync(wire.body)],
    () => ['deflate', deflateSync(wire.body)],
    () => ['gzip', wire.body],
    () => ['gzip', gzipSync(Buffer.alloc(20_000_000))],
    () => ['br', wire.body],
    () => ['identity', wire.body],
    () => ['x'.repeat(1000), wire.body],
  ])()
  wire.headers.push(['content-encoding', String(name)])
  wire.body = /** @type {Buffer} */ (body)
}

/** @param {Wire} wire @param {Random} random */
function framing(wire, random) {
  const { body } = wire
  const head = (/** @type {string} */ lines) => Buffer.from(lines, 'latin1')
  const length = body.length
  wire.broken = true
  wire.framing = random.pick([
    () => /** @type {Wire['framing']} */ ('chunked'),
    () => head(`content-length: ${length + random.pick([1, 100, 5_000_000])}\r\n\r\n`),
    () => head(`content-length: ${Math.max(0, length - random.pick([1, 20]))}\r\n\r\n`),
    () => head(`content-length: ${random.pick(['-1', '+5', '0x10', '1e3', '', ' ', '99999999999999999999', '5, 5', '5, 6'])}\r\n\r\n`),
    () => head(`content-length: ${length}\r\ncontent-length: ${length + 1}\r\n\r\n`),
    () => head('\r\n'),
    () => head('transfer-encoding: chunked\r\n\r\n'),
    () => head(`transfer-encoding: chunked\r\n\r\n${length.toString(16)}\r\n`),
    () => head('transfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFF\r\n'),
    () => head(`transfer-encoding: chunked\r\n\r\n${'1;x='.padEnd(20_000, 'y')}\r\n`),
    () => head('transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n'),
    () => head('transfer-encoding: identity\r\n\r\n'),
    () => head('transfer-encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nx-trailer: 1\r\n__proto__: 1\r\n\r\n'),
  ])()
}

/** @param {Wire} wire @param {Random} random */
function smuggle(wire, random) {
  const { length } = wire.body
  wire.broken = true
  wire.framing = Buffer.from(
    random.pick([
      `content-length: ${length}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
      `transfer-encoding: xchunked\r\ncontent-length: ${length}\r\n\r\n`,
      `transfer-encoding : chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
      `transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n${SMUGGLED}`,
      `content-length: 0\r\n\r\n${SMUGGLED}`,
      `content-length: ${length}\n\n`,
      `x: y\ncontent-length: 0\r\n\r\n${SMUGGLED}`,
      `\r\n\r\n\r\n${SMUGGLED}`,
    ]),
  )
}

/** @param {Wire} wire @param {Random} random */
function pipeline(wire, random) {
  wire.twice = random.chance(0.4)
  wire.after = random.pick([
    () => HEALTH,
    () => Buffer.concat(Array.from({ length: random.pick([3, 30, 70, 300]) }, () => HEALTH)),
    () => Buffer.from('\r\n\r\nnonsense\r\n\r\n'),
    () => Buffer.from(Array.from({ length: 300 }, () => random.whole(0, 255))),
    () =>
      Buffer.from(
        'GET /uamp HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
      ),
    () => Buffer.from('POST /events HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{"type":'),
  ])()
  wire.broken = true
}

/** @param {Wire} wire @param {Random} random */
function pace(wire, random) {
  wire.pace = random.pick(['slow', 'slow', 'abort', 'abort', 'half', 'stall'])
  wire.broken = true
}

/** @param {Wire} wire @param {Random} random */
function host(wire, random) {
  wire.headers = wire.headers.filter(([name]) => name !== 'host')
  for (const value of random.pick([[], ['localhost', 'localhost'], [random.pick(HOSTS)], [random.pick(HOSTS)]]))
    wire.headers.push(['host', value])
  wire.broken = true
}

/** @param {Wire} wire @param {Random} random */
function version(wire, random) {
  wire.version = random.pick(['HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', 'HTTP/1.2', 'HTTP/9.9', 'http/1.1', 'HTTP/1.1 x', '', 'RTSP/1.0'])
  wire.broken = true
}
