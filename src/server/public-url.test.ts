import { expect, test } from 'vitest'
import { publicUrl } from './public-url.ts'

const trusts = (address: string) => address.startsWith('10.')

const at = (headers: Record<string, string> = {}, url = 'http://inside:8787/agents/bob/x?y') => new Request(url, { headers })

test('what the request says, and no word of a proxy that is not trusted', () => {
  const headers = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https', forwarded: 'host=evil.example' }
  expect(publicUrl({})(at(headers))).toBe('http://inside:8787')
})

test('what was configured, whatever the request says', () => {
  const headers = { 'x-forwarded-host': 'evil.example' }
  expect(publicUrl({ publicUrl: 'https://example.com/prefix/', trusts })(at(headers))).toBe('https://example.com/prefix')
})

test.each(['example.com', 'ftp://example.com', 'https://example.com/?x', 'https://a:b@example.com', ''])(
  '"%s" cannot be configured',
  (url) => {
    expect(() => publicUrl({ publicUrl: url })).toThrow('is not the address of a server')
  },
)

test.each<[string, Record<string, string>, string]>([
  ['nothing', {}, 'http://inside:8787'],
  [
    'X-Forwarded-*',
    { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'example.com', 'x-forwarded-prefix': '/team/' },
    'https://example.com/team',
  ],
  ['a port', { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'example.com:8443' }, 'https://example.com:8443'],
  ['the usual port', { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'example.com:443' }, 'https://example.com'],
  [
    'what another proxy told it',
    { 'x-forwarded-for': '192.0.2.1, 10.0.0.7', 'x-forwarded-proto': 'https, http', 'x-forwarded-host': 'outer.example, inner.example' },
    'https://outer.example',
  ],
  [
    'what the client wrote in front',
    { 'x-forwarded-for': '192.0.2.9, 192.0.2.1', 'x-forwarded-proto': 'http, https', 'x-forwarded-host': 'evil.example, outer.example' },
    'https://outer.example',
  ],
  [
    'the same by Forwarded',
    { forwarded: 'for=192.0.2.9;host=evil.example, for=192.0.2.1;host=outer.example, for=10.0.0.7;host=inner.example' },
    'http://outer.example',
  ],
  ['the scheme alone', { 'x-forwarded-proto': 'https' }, 'https://inside:8787'],
  ['Forwarded', { forwarded: 'for=192.0.2.60;proto=https;host="example.com:8443"' }, 'https://example.com:8443'],
  ['one thing, and the client another', { forwarded: 'host=a.example', 'x-forwarded-host': 'b.example' }, 'http://inside:8787'],
  ['an IPv6 address', { 'x-forwarded-host': '[2001:db8::1]:80' }, 'http://[2001:db8::1]'],
  [
    'a placeholder',
    { 'x-forwarded-host': '$host', 'x-forwarded-proto': '{scheme}', 'x-forwarded-prefix': '{prefix}' },
    'http://inside:8787',
  ],
  ['a path in the host', { 'x-forwarded-host': 'example.com/evil' }, 'http://inside:8787'],
  ['a user in the host', { 'x-forwarded-host': 'a@example.com' }, 'http://inside:8787'],
  ['another host in the prefix', { 'x-forwarded-prefix': '//evil.example' }, 'http://inside:8787'],
  ['another scheme', { 'x-forwarded-proto': 'javascript' }, 'http://inside:8787'],
])('a trusted proxy says %s', (_, headers, expected) => {
  expect(publicUrl({ trusts })(at(headers))).toBe(expected)
})
