import { describe, expect, test } from 'vitest'
import { judge, nameOf, namespaceOf, wrongRule, type Candidate, type TrustRules } from './trust.ts'

const OWN = 'https://agents.alice.example'
const PORTAL = 'https://portal.example'
const bob: Candidate = { issuer: 'https://bob.example.com', subject: 'helper', labels: ['verified', 'reputation:90'] }
const ofPortal = (subject: string, labels: readonly string[] = []): Candidate => ({ issuer: PORTAL, subject, labels })

const rows: readonly (readonly [rules: TrustRules, candidate: Candidate, accepted: boolean])[] = [
  // Without rules nobody is believed.
  [{}, bob, false],
  [{ allow: [] }, bob, false],
  [{ allow: ['nobody'] }, bob, false],
  [{ allow: ['everyone'] }, bob, true],
  // Deny wins over everything.
  [{ allow: ['everyone'], deny: ['@com.example.**'] }, bob, false],
  [{ trusted: [PORTAL], deny: ['@mallory'] }, ofPortal('mallory'), false],
  [{ trusted: [PORTAL], deny: ['platform'] }, ofPortal('alice'), false],
  [{ allow: ['everyone'], deny: ['nobody'] }, bob, true],
  // Trusted issuers.
  [{ trusted: [PORTAL] }, ofPortal('alice'), true],
  [{ trusted: [`${PORTAL}/`] }, ofPortal('alice'), true],
  [{ trusted: [PORTAL] }, bob, false],
  [{ trusted: [PORTAL], allow: ['@com.example.**'] }, bob, true],
  [{ trusted: ['https://portal.example.evil.com'] }, ofPortal('alice'), false],
  // Labels count only from trusted issuers.
  [{ allow: ['#verified'] }, bob, false],
  [{ trusted: [PORTAL], allow: ['#verified'] }, ofPortal('alice', ['verified']), true],
  [{ trusted: [PORTAL], allow: ['#verified'] }, ofPortal('alice'), false],
  [{ trusted: [PORTAL], allow: ['#reputation:80'] }, ofPortal('alice', ['reputation:80']), true],
  [{ trusted: [PORTAL], allow: ['#reputation:80'] }, ofPortal('alice', ['reputation:100']), true],
  [{ trusted: [PORTAL], allow: ['#reputation:80'] }, ofPortal('alice', ['reputation:79']), false],
  [{ trusted: [PORTAL], allow: ['#reputation:80'] }, ofPortal('alice', ['verified']), false],
  [{ trusted: [PORTAL], allow: ['#verified', '@alice'] }, ofPortal('alice'), true],
  [{ trusted: [PORTAL], deny: ['#banned'] }, ofPortal('alice', ['banned']), false],
  // One level, and any depth.
  [{ trusted: [PORTAL], allow: ['#x', '@alice.*'] }, ofPortal('alice.bot'), true],
  [{ trusted: [PORTAL], allow: ['#x', '@alice.*'] }, ofPortal('alice'), false],
  [{ trusted: [PORTAL], allow: ['#x', '@alice.*'] }, ofPortal('alice.bot.one'), false],
  [{ trusted: [PORTAL], allow: ['#x', '@alice.**'] }, ofPortal('alice.bot.one'), true],
  [{ trusted: [PORTAL], allow: ['#x', '@alice.**'] }, ofPortal('alice'), false],
  [{ trusted: [PORTAL], allow: ['#x', '@alice.**'] }, ofPortal('alicette.bot'), false],
  // Names of addresses.
  [{ allow: ['@com.example.bob/helper'] }, bob, true],
  [{ allow: ['@com.example.bob'] }, bob, false],
  [{ allow: ['@com.example.bob.*'] }, bob, true],
  [{ allow: ['@com.example.*'] }, bob, false],
  [{ allow: ['@com.example.**'] }, bob, true],
  [{ allow: ['@com.example.bob.helper'] }, bob, false],
  [{ allow: ['@com.example/helper'] }, { ...bob, issuer: 'https://example.com', path: '/agents' }, true],
  [{ allow: ['@com.example/team.*'] }, { ...bob, issuer: 'https://example.com', subject: 'team.one' }, true],
  [{ allow: ['https://bob.example.com'] }, bob, true],
  [{ allow: ['https://bob.example.com/helper'] }, bob, true],
  [{ allow: ['https://bob.example.com/other'] }, bob, false],
  // Nobody gets a platform's name by calling a machine so, and a port is somebody else.
  [{ trusted: [PORTAL], allow: ['@alice.*', '@alice'] }, { ...bob, issuer: 'https://alice', subject: '' }, false],
  [{ allow: ['@com.example.bob/helper'] }, { ...bob, issuer: 'https://bob.example.com:8443' }, false],
  // The family is the own domain.
  [{ allow: ['family'] }, { ...bob, issuer: 'https://other.alice.example:8443' }, true],
  [{ allow: ['family'] }, bob, false],
  [{ trusted: [PORTAL], allow: ['family', '#x'] }, ofPortal('example.alice'), false],
  [{ trusted: [PORTAL], allow: ['platform', '#x'] }, ofPortal('anybody'), true],
  [{ allow: ['platform'] }, bob, false],
]

test.each(rows)('%j judges %j: %s', (rules, candidate, accepted) => {
  expect(judge(rules, candidate, OWN).accepted).toBe(accepted)
})

test('says which rule decided', () => {
  expect(judge({ deny: ['everyone'] }, bob, OWN).because).toBe('"deny" has everyone')
  expect(judge({}, bob, OWN).because).toBe('"allow" names nobody')
  expect(judge({ allow: ['@x.y'] }, bob, OWN).because).toBe('no rule of "allow" names it')
})

test('without an address of its own a server has no family', () => {
  expect(judge({ allow: ['family'] }, bob, undefined).accepted).toBe(false)
})

describe('addresses', () => {
  test.each([
    ['https://agents.example.com/bob', 'com.example.agents/bob', 'com.example'],
    ['https://example.com', 'com.example', 'com.example'],
    ['https://EXAMPLE.com/agents/bob/', 'com.example/bob', 'com.example'],
    ['https://example.com:8443/bob', 'com.example:8443/bob', 'com.example'],
    ['https://bob.example.co.uk/', 'uk.co.example.bob', 'uk.co.example'],
    ['https://bob.example.de/', 'de.example.bob', 'de.example'],
    ['http://localhost:8787/agents/demo', 'localhost:8787/demo', 'localhost:8787'],
    ['https://alice/bob', 'alice:443/bob', 'alice:443'],
    ['http://127.0.0.1:80/x', '127-0-0-1:80/x', '127-0-0-1:80'],
    ['ftp://example.com', undefined, undefined],
    ['bob', undefined, undefined],
  ])('%s is %s of %s', (address, name, namespace) => {
    expect([nameOf(address), namespaceOf(address)]).toEqual([name, namespace])
  })
})

test.each([
  ['everyone', true],
  ['@alice', true],
  ['@alice.*', true],
  ['@com.example/bob', true],
  ['@localhost:8787/demo', true],
  ['#verified', true],
  ['#reputation:80', true],
  ['https://example.com', true],
  ['https://example.com/', true],
  ['https://example.com/agents/bob', true],
  ['http://localhost:8787', true],
  // What no issuer can have would allow, or deny, nobody.
  ['https://example.com/*', false],
  ['https://*.example.com', false],
  ['https://Example.com', false],
  ['HTTPS://example.com', false],
  ['https://example.com:443', false],
  ['https://example.com/?a=b', false],
  ['https://example.com/#a', false],
  ['https://me@example.com', false],
  ['https://', false],
  ['alice', false],
  ['@', false],
  ['@*', false],
  ['@**', false],
  ['@a.*.b', false],
  ['@a..b', false],
  ['#', false],
  ['everybody', false],
])('the rule %s can be used: %s', (rule, usable) => {
  expect(wrongRule(rule) === undefined).toBe(usable)
})

test('a rule that is written in another way is told the right one', () => {
  expect(wrongRule('https://Example.com:443/')).toBe('must be written as "https://example.com", as tokens have it')
  expect(wrongRule('https://example.com/*')).toMatch(/^must not have a "\*": "https:\/\/example\.com" means all of an issuer/)
})
