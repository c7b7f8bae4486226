import { expect, test } from 'vitest'
import { outcome } from '../../test/support/envelopes.ts'
import { verifies } from '../../test/support/verifies.ts'
import { didOf, didOfUrl, didUrl, documentUrl, isSameDid, webDid } from './did.ts'

const LABEL = 'a'.repeat(63)
const HOST_253 = `${LABEL}.${LABEL}.${LABEL}.${'a'.repeat(61)}`

const LEADS_TO = [
  ['did:web:example.com', 'https://example.com/.well-known/did.json'],
  ['did:web:EXAMPLE.com', 'https://example.com/.well-known/did.json'],
  ['did:web:localhost%3A8443', 'https://localhost:8443/.well-known/did.json'],
  ['did:web:localhost%3a8443', 'https://localhost:8443/.well-known/did.json'],
  ['did:web:example.com%3A65535:a', 'https://example.com:65535/a/did.json'],
  // What is not encoded is a path (did:web §3.1).
  ['did:web:example.com:8443', 'https://example.com/8443/did.json'],
  ['did:web:example.com:agents:Bob_1.-x', 'https://example.com/agents/Bob_1.-x/did.json'],
  ['did:web:xn--bcher-kva.example', 'https://xn--bcher-kva.example/.well-known/did.json'],
  ['did:web:example.com:..a', 'https://example.com/..a/did.json'],
  [`did:web:${HOST_253}`, `https://${HOST_253}/.well-known/did.json`],
] as const

const LEADS_NOWHERE = [
  '',
  'did:web:',
  'did:key:z6Mk',
  'https://example.com',
  'DID:WEB:example.com',
  'did:WEB:example.com',
  ' did:web:example.com',
  'did:web:example.com ',
  'did:web:example.com\n',
  'did:web:example.com.',
  'did:web:.example.com',
  'did:web:a..b',
  'did:web:-a.example',
  'did:web:a-.example',
  'did:web:a_b.example',
  `did:web:${LABEL}a.example`,
  `did:web:a${HOST_253}`,
  // Addresses, in every form that a URL has for them.
  'did:web:127.0.0.1',
  'did:web:127.0.0.1%3A80',
  'did:web:127.1',
  'did:web:2130706433',
  'did:web:0x7f000001',
  'did:web:0x7f.1',
  'did:web:0177.0.0.01',
  'did:web:127.0.0.0x1',
  'did:web:[::1]',
  'did:web:%5B%3A%3A1%5D',
  'did:web:１２７.0.0.1',
  // Ports.
  'did:web:a%3A',
  'did:web:a%3A0',
  'did:web:a%3A080',
  'did:web:a%3A65536',
  'did:web:a%3A99999',
  'did:web:a%3A123456',
  'did:web:a%3A80%3A80',
  'did:web:a%3A-1',
  'did:web:a%3A8o',
  // Another host than the one that one sees.
  'did:web:user@evil.example',
  'did:web:user%40evil.example',
  'did:web:a.example%2Fb',
  'did:web:a.example/b',
  'did:web:a.example\\b',
  'did:web:a.example?b',
  'did:web:a.example#b',
  'did:web:a.example%23b',
  'did:web:a.example%00',
  'did:web:bücher.example',
  'did:web:exampl\u0435.com',
  'did:web:\u212aelvin.example',
  'did:web:a%E3%80%82b',
  // Paths.
  'did:web:a:',
  'did:web:a::b',
  'did:web:a:.:b',
  'did:web:a:..:b',
  'did:web:a:%2e%2e:b',
  'did:web:a:b%2Fc',
  'did:web:a:b/c',
  'did:web:a:b#c',
  'did:web:a:b?c',
  'did:web:a:ä',
  `did:web:${'a'.repeat(10_000)}`,
  `did:web:a${':b'.repeat(5000)}`,
]

verifies('envelope:did-web', 'a did:web leads to its host, or nowhere', async () => {
  for (const [did, url] of LEADS_TO) {
    expect(documentUrl(did)).toBe(url)
    expect(new URL(url).href).toBe(url)
  }
  for (const did of LEADS_NOWHERE) {
    expect([did, webDid(did)]).toEqual([did, undefined])
    expect(await outcome(() => documentUrl(did))).toBe('4.01 did')
  }
})

test('a DID is compared without the case of its host, and with that of its path', () => {
  const same = [
    ['did:web:Example.COM', 'did:web:example.com'],
    ['did:web:a%3A8443', 'did:web:A%3a8443'],
    ['did:web:A:Bob', 'did:web:a:Bob'],
    ['did:web:a#key-1', 'did:web:a#key-2'],
    ['did:key:z6Mk', 'did:key:z6Mk'],
  ] as const
  const others = [
    ['did:web:a:Bob', 'did:web:a:bob'],
    ['did:web:a%3A8443', 'did:web:a:8443'],
    ['did:web:a', 'did:web:a.'],
    ['did:web:a', 'did:web:a/b'],
    ['did:key:z6Mk', 'did:key:Z6Mk'],
    ['did:web:a', ''],
    ['https://A.example', 'https://a.example'],
  ] as const
  for (const [one, other] of same) expect([one, other, isSameDid(one, other)]).toEqual([one, other, true])
  for (const [one, other] of others) expect([one, other, isSameDid(one, other)]).toEqual([one, other, false])
})

test('a DID URL is relative to the DID of its document', () => {
  expect(didUrl('#key-1', 'did:web:A.example')).toBe('did:web:a.example#key-1')
  expect(didUrl('did:web:B#Key-1', 'did:web:a')).toBe('did:web:b#Key-1')
  expect(didUrl('did:web:B', 'did:web:a')).toBe('did:web:b')
  expect(didUrl('#key-1')).toBe('#key-1')
  expect(didUrl('#a#b', 'did:web:a')).toBe('did:web:a#a#b')
  expect(didOf('did:web:A#b#c')).toBe('did:web:a')
})

test.each([
  ['https://Example.com', 'did:web:example.com'],
  ['https://example.com:443/', 'did:web:example.com'],
  ['http://localhost:3000/', 'did:web:localhost%3A3000'],
  ['https://example.com/agents//bob/', 'did:web:example.com:agents:bob'],
  ['https://user:word@example.com/a?b#c', 'did:web:example.com:a'],
  ['http://127.0.0.1:3000', 'did:web:localhost%3A3000'],
  ['http://[::1]:3000/a', 'did:web:localhost%3A3000:a'],
])('%s is the DID of a URL', (url, did) => {
  expect(didOfUrl(url)).toBe(did)
})

test('the DID of a URL leads back to it', () => {
  for (const [did, url] of LEADS_TO) {
    const path = url.replace(/\/did\.json$/, '').replace(/\/\.well-known$/, '')
    expect(didOfUrl(path)).toBe(webDid(did)?.did)
  }
})
