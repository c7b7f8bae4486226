import { expect, test } from 'vitest'
import { UampError } from '../../protocol/errors.ts'
import type { HttpClient } from '../ports/http.ts'
import { redactedLog } from './redaction.ts'
import { Secrets, secretsOf } from './secrets.ts'
import { SessionSecrets } from './session-secrets.ts'

const KEY = 'sk-live/9f8e"7d6c+5b4a\\3210'

const http: HttpClient = { request: () => Promise.reject(new Error('Nobody is called')) }

const base64 = (text: string): string => Buffer.from(text).toString('base64')

test.each([
  ['as it is', KEY],
  ['in JSON', JSON.stringify({ KEY })],
  ['in JSON in JSON', JSON.stringify(JSON.stringify({ KEY }))],
  ['in an address', `https://host/?key=${encodeURIComponent(KEY)}`],
  ['in an address in lower case', `https://host/?key=${encodeURIComponent(KEY).replaceAll(/%../g, (code) => code.toLowerCase())}`],
  ['in base64', base64(KEY)],
  ['in base64, after one character', base64(`:${KEY}`)],
  ['in base64, after two', base64(`u:${KEY}`)],
  ['in base64, after many, for addresses', Buffer.from(`somebody:${KEY}:else`).toString('base64url')],
  ['where a text was cut off', `The key is ${KEY.slice(0, 11)}`],
  ['where it was shortened', `The key ${KEY.slice(0, 18)}… is wrong`],
])('finds a secret %s', (_, text) => {
  const clean = new Secrets([KEY]).text(text)
  expect(clean).toContain('[redacted]')
  for (const trace of [KEY, KEY.slice(0, 10), encodeURIComponent(KEY).slice(0, 12), base64(KEY).slice(4, 14)])
    expect(clean).not.toContain(trace)
})

test('finds one after the other, and one that begins like another', () => {
  const secrets = new Secrets(['abcdef-short', 'abcdef-short-and-long', 'ghijkl'])
  expect(secrets.text('abcdef-short-and-long,abcdef-short ghijklghijkl!')).toBe('[redacted],[redacted] [redacted][redacted]!')
})

test('leaves alone what is none: another text, a beginning that all keys have, a word that is too short', () => {
  const secrets = new Secrets(['sk-ant-api03-0123456789abcdef', 'ok', '', undefined])
  for (const text of ['', 'ok', 'keys begin with sk-ant-api03- and go on', 'sk-', 'a'.repeat(1000)]) expect(secrets.text(text)).toBe(text)
  expect(new Secrets().text(KEY)).toBe(KEY)
})

test('what it costs is the length of the text, whatever is looked for', () => {
  const nearly = (end: string): string => `${'a'.repeat(2000)}b${end.repeat(2090)}`
  const secrets = new Secrets([...Array.from('cdefghijklmnop', nearly), 'a'.repeat(5000)])
  const long = 'a'.repeat(4_000_000)
  expect(secrets.text(`${long}!`)).toBe('[redacted]!')
  expect(new Secrets([nearly('c')]).text(`${long}!`)).toBe(`${long}!`)
  expect(new Secrets([nearly('c')]).text(`${long}${nearly('c')}!`)).toBe(`${long}[redacted]!`)
})

test.each([
  [{ 'X-Api-Key': KEY }, 'https://host/'],
  [{ 'proxy-authorization': `Basic ${base64(`me:${KEY}`)}` }, 'https://host/'],
  [{ 'x-a2a-notification-token': KEY, dpop: KEY }, 'https://host/'],
  [{}, `https://me:${encodeURIComponent(KEY)}@host/`],
  [{}, `https://host/?api_key=${encodeURIComponent(KEY)}&page=1`],
])('learns it from %o and %s', (headers, url) => {
  const secrets = new SessionSecrets({ secrets: new Secrets(), http })
  secrets.learn({ url, headers: headers as Record<string, string> })
  expect(secrets.text(`It was ${KEY}`)).toBe('It was [redacted]')
})

test('a session forgets the oldest of very many, and learns no words, nor what the process knows', () => {
  const secrets = new SessionSecrets({ secrets: new Secrets(['configured-key']), http })
  const show = (token: string): void => secrets.learn({ url: 'https://host/', headers: { authorization: `Bearer ${token}` } })
  for (const token of ['first-token', 'session', 'configured-key']) show(token)
  for (let n = 10; n < 42; n++) show(`token-number-${n}`)
  expect(secrets.text('first-token token-number-10 token-number-41 configured-key')).toBe('first-token [redacted] [redacted] [redacted]')
  for (const letter of 'abcdefgh') show(letter.repeat(4 * 1024))
  expect(secrets.text(`session token-number-41 ${'a'.repeat(4096)}`)).toBe(`session token-number-41 ${'a'.repeat(4096)}`)
  expect(secrets.text('h'.repeat(4096))).toBe('[redacted]')
})

test('a session looks into no names of fields; the process does', () => {
  const secrets = new SessionSecrets({ secrets: new Secrets(['configured-key']), http })
  secrets.learn({ url: 'https://host/', headers: { cookie: 'not_found-and-details' } })
  const value = { 'not_found-and-details': 'not_found-and-details', 'configured-key': 1 }
  expect(secrets.value(value)).toEqual({ 'not_found-and-details': '[redacted]', '[redacted]': 1 })
})

test('what somebody is called with: values, headers of any name, addresses, programs', () => {
  const headers = { 'x-team': 'team-secret', accept: 'application/json', 'anthropic-version': '2023-06-01' }
  const program = {
    env: { API_KEY: 'env-secret', LANG: 'en_GB.UTF-8', MAX_TOKENS: '100000', DB: 'pg://me:db-secret@host/' },
    args: ['--token=arg-secret', '--key', 'other-secret', '--verbose'],
  }
  expect(
    secretsOf({ values: ['value-secret', undefined], headers, urls: ['https://host/?token=url-secret', 'no url'], program }).toSorted(),
  ).toEqual(['arg-secret', 'db-secret', 'db-secret', 'env-secret', 'other-secret', 'team-secret', 'url-secret', 'value-secret'].toSorted())
})

test('an error is told without it; the code stays, and one without it is the same', () => {
  const secrets = new Secrets([KEY])
  const told = secrets.told(new UampError('rate_limited', `No ${KEY}`, { details: { retry_after: 1, [KEY]: [KEY] }, cause: 'why' }))
  expect(told.toBody()).toEqual({
    code: 'rate_limited',
    message: 'No [redacted]',
    details: { retry_after: 1, '[redacted]': ['[redacted]'] },
  })
  expect(told.cause).toBe('why')
  const plain = new UampError('not_found', 'Nothing here', { details: { id: 'x' } })
  expect(secrets.told(plain)).toBe(plain)
})

test('a log has it neither by value nor by name, also in errors and in what caused them', () => {
  const lines: unknown[][] = []
  const log = redactedLog((...line) => void lines.push(line), new Secrets([KEY]))
  const error = Object.assign(new TypeError(`Failed with ${KEY}`, { cause: new Error(`deeper ${KEY}`) }), {
    request: { headers: { DPoP: 'x' } },
  })
  const round: Record<string, unknown> = { proof: 'by name', credentials: 'by name', 'x-api-key': 'by name', notification_token: 'by name' }
  round['itself'] = round
  log('error', `About ${KEY}`, { error, round, session: 'kept' })
  const [, message, fields] = lines[0] as [
    string,
    string,
    { error: Error & { request: unknown }; round: Record<string, unknown>; session: string },
  ]
  expect(message).toBe('About [redacted]')
  expect(fields.error).toBeInstanceOf(TypeError)
  expect(fields.error.message).toBe('Failed with [redacted]')
  expect(`${fields.error.stack} ${(fields.error.cause as Error).stack}`).not.toContain(KEY.slice(0, 10))
  expect(fields.error.request).toEqual({ headers: { DPoP: '[redacted]' } })
  expect(fields.round).toMatchObject({
    proof: '[redacted]',
    credentials: '[redacted]',
    'x-api-key': '[redacted]',
    notification_token: '[redacted]',
  })
  expect(fields.session).toBe('kept')
  expect(error.message).toContain(KEY)
})
