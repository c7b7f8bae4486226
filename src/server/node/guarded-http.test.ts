import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { httpClientContract } from '../../../test/contract/http-client.ts'
import { guardedHttp, type GuardOptions } from './guarded-http.ts'

httpClientContract('guarded', () => guard({ allow: ['127.0.0.1'] }).http)

const BOUNDS = { maxBytes: 1024 * 1024, timeouts: { firstByteMs: 5_000, idleMs: 5_000, totalMs: 5_000 } }

function guard(options: GuardOptions = {}) {
  const http = guardedHttp(options)
  onTestFinished(() => http.close())
  const get = (url: string) => http.request({ url, method: 'GET', headers: {}, signal: AbortSignal.timeout(5_000), ...BOUNDS })
  return { http, get }
}

async function listening(handle: RequestListener) {
  let connections = 0
  const server = createServer(handle).listen(0, '127.0.0.1')
  server.on('connection', () => connections++)
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, connections: () => connections }
}

const LOCAL = [
  '127.0.0.1',
  '127.1',
  '127.255.255.254',
  '2130706433', // decimal
  '0177.0.0.1', // octal
  '0x7f.0.0.1', // hexadecimal
  '0x7f000001',
  '017700000001',
  '127.0.0.1.', // a full name's dot
  '１２７.0.0.1', // wide digits
  '127。0。0。1', // ideographic stops
  'localhost',
  'LOCALHOST',
  'localhost.',
  'anything.localhost',
  '0.0.0.0',
  '0',
  '[::1]',
  '[::]',
  '[0:0:0:0:0:0:0:1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::127.0.0.1]',
]

const PRIVATE = [
  '10.0.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '100.64.0.1', // carrier-grade NAT
  '100.100.100.200', // metadata of Alibaba
  '169.254.169.254', // metadata of most clouds
  '0xa9fea9fe',
  '2852039166',
  '192.0.0.192', // metadata of Oracle
  '168.63.129.16', // metadata of Azure
  '198.18.0.1',
  '192.0.2.1',
  '224.0.0.1',
  '255.255.255.255',
  '240.0.0.1',
  '[fe80::1]',
  '[fc00::1]',
  '[fd00:ec2::254]', // metadata of AWS
  '[ff02::1]',
  '[fec0::1]',
  '[64:ff9b::7f00:1]', // NAT64
  '[64:ff9b:1::a00:1]',
  '[::ffff:169.254.169.254]',
  '[::ffff:8.8.8.8]',
  '[2002:7f00:1::]', // 6to4
  '[2001:0:7f00:1::]', // Teredo
  '[2001:db8::1]',
  '[100::1]',
]

verifies('a2a-1.0.push-ssrf', 'an address that is not on the public internet is refused, however it is written', async () => {
  const { http, get } = guard()
  for (const host of [...LOCAL, ...PRIVATE]) {
    expect(http.refuses(`https://${host}/hook`), host).toMatch(/is this machine|is not on the public internet/)
    await expect(get(`https://${host}/hook`), host).rejects.toMatchObject({ code: 'forbidden' })
  }
})

verifies('a2a-1.0.push-ssrf', 'a URL with a control character or a space is refused before a parser takes it out', async () => {
  const { http, get } = guard()
  for (const url of [
    'https://hooks.exa\rmple.com/',
    'https://hooks.exa\nmple.com/',
    'https://hooks.example.com/a\r\nX-Injected: 1',
    'https://hooks.example.com/\ta',
    '\u0000https://hooks.example.com/',
    ' https://hooks.example.com/',
    'https://hooks.example.com/\u007f',
    'https://hooks.example.com/\u0085',
    'https://hooks.example.com/\u2028',
    'ht\ntps://hooks.example.com/',
  ]) {
    expect(http.refuses(url), JSON.stringify(url)).toBe('it contains a space or a control character')
    await expect(get(url), JSON.stringify(url)).rejects.toMatchObject({ code: 'forbidden' })
  }
})

test.each([
  '8.8.8.8',
  '1.1.1.1',
  '172.15.0.1',
  '172.32.0.1',
  '100.63.0.1',
  '11.0.0.1',
  '[2606:4700:4700::1111]',
  '[2a00:1450:4001::1]',
  'example.com',
])('%s may be called', (host) => expect(guard().http.refuses(`https://${host}/hook`)).toBeUndefined())

test.each([
  ['ftp://example.com/', /not an http/],
  ['file:///etc/passwd', /not an http/],
  ['not-a-url', /not an http/],
  ['http://example.com/', /not https/],
  ['https://user:secret@example.com/', /user name or a password/],
  ['https://user@example.com/', /user name or a password/],
  ['https://example.com:22/', /port 22/],
  ['https://example.com:25/', /port 25/],
])('%s is refused', (url, reason) => expect(guard().http.refuses(url)).toMatch(reason))

test.each(['https://example.com:443/', 'https://example.com:8443/', 'https://example.com:80/'])('%s has a port for HTTP', (url) =>
  expect(guard().http.refuses(url)).toBeUndefined(),
)

test('a name is refused if one of its addresses is private, and nothing is connected to', async () => {
  const { port, connections } = await listening((_, response) => response.end('inside'))
  for (const addresses of [['127.0.0.1'], ['8.8.8.8', '127.0.0.1'], ['::ffff:127.0.0.1'], ['fe80::1%eth0'], []]) {
    const resolve = async () => addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    const { get } = guard({ resolve })
    await expect(get(`https://innocent.example:${port}/`), String(addresses)).rejects.toMatchObject({ code: 'forbidden' })
  }
  expect(connections()).toBe(0)
})

test('a name that answers differently the second time gains nothing: what was checked is connected to', async () => {
  const { port, connections } = await listening((_, response) => response.end('inside'))
  const answers = ['127.0.0.2', '127.0.0.1']
  const { get } = guard({ allow: ['127.0.0.2/32'], resolve: async () => [{ address: answers.shift() ?? '', family: 4 }] })
  // Nobody listens at the first address; a second question, before connecting, would have led to where somebody does.
  await expect(get(`https://rebinding.example:${port}/`)).rejects.toMatchObject({ code: 'ECONNREFUSED', address: '127.0.0.2' })
  expect(answers).toEqual(['127.0.0.1'])
  await expect(get(`https://rebinding.example:${port}/`)).rejects.toMatchObject({ code: 'forbidden' })
  expect(connections()).toBe(0)
})

test('a connection goes to the address that was checked, and to no other', async () => {
  const { port } = await listening((request, response) => response.end(request.headers.host))
  const { get } = guard({ allow: ['127.0.0.0/8', `named.example:${port}`], resolve: async () => [{ address: '127.0.0.1', family: 4 }] })
  const answer = await get(`http://named.example:${port}/`)
  expect(await read(answer.body)).toBe(`named.example:${port}`)
})

test('a redirect is not followed', async () => {
  const paths: string[] = []
  const { port } = await listening((request, response) => {
    paths.push(request.url ?? '')
    response.writeHead(302, { location: 'http://169.254.169.254/latest/meta-data/' }).end()
  })
  const { get } = guard({ allow: ['127.0.0.1'] })
  const { status } = await get(`http://127.0.0.1:${port}/start`)
  expect([status, paths]).toEqual([302, ['/start']])
})

test.each([
  ['a host', 'localhost', 'http://localhost:9000/', true],
  ['a host whatever its case', 'LocalHost', 'http://localhost:9000/', true],
  ['a host with its dot', 'localhost', 'http://localhost.:9000/', true],
  ['a host with its port', 'localhost:9000', 'http://localhost:9000/', true],
  ['a host with another port', 'localhost:9001', 'http://localhost:9000/', false],
  ['the port that a scheme has', '10.0.0.1:443', 'https://10.0.0.1/', true],
  ['an address in another form', '127.0.0.1', 'http://0x7f000001/', true],
  ['an IPv6 address', '[::1]:9000', 'http://[::1]:9000/', true],
  ['an IPv6 address without brackets', '::1', 'http://[::1]:9000/', true],
  ['a network', '10.0.0.0/8', 'http://10.1.2.3/', true],
  ['another network', '10.0.0.0/8', 'https://192.168.0.1/', false],
  ['a network of IPv6', 'fd00::/8', 'https://[fd00::1]/', true],
  ['a host that merely ends alike', 'localhost', 'https://127.0.0.1/', false],
])('the allow-list: %s', (_, allow, url, allowed) => {
  expect(guard({ allow: [allow] }).http.refuses(url) === undefined).toBe(allowed)
})

test.each(['', '10.0.0.0/33', '10.0.0.0/x', 'host/8', 'a b', 'http://localhost', 'host:port'])(
  'an allow-list with "%s" is refused',
  (rule) => {
    expect(() => guardedHttp({ allow: [rule] })).toThrow('allows nothing')
  },
)

async function read(body: AsyncIterable<Uint8Array>): Promise<string> {
  let text = ''
  for await (const chunk of body) text += Buffer.from(chunk).toString()
  return text
}
