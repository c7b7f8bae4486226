import { expect, test } from 'vitest'
import type { Action } from '../core/ports/access.ts'
import { actionsOf, allows, foreignScopes, may, within } from './scopes.ts'

const ALL: readonly Action[] = ['call', 'tool', 'read', 'cancel', 'content', 'room', 'host', 'pay', 'bank', 'operate']
const principal = (scopes: readonly string[], agents?: readonly string[]) => ({ tenant: 'default', id: 'x', scopes, agents })

test.each<readonly [readonly string[], readonly Action[]]>([
  [['read'], ['read']],
  [['write'], ['call', 'tool', 'read', 'cancel', 'content', 'room', 'pay']],
  [['admin'], ALL],
  [['*'], ALL.filter((action) => action !== 'host' && action !== 'bank')],
  [['tools:*'], ['tool']],
  [['host:alice'], ['host']],
  [['host:bob'], []],
  [['host:*'], []],
  [['platform', 'openid', 'service:payments', 'Read', ''], []],
  ...ALL.map((action) => [[action], [action]] as const),
])('%j allows %j', (scopes, actions) => {
  expect(actionsOf(principal(scopes), 'alice')).toEqual(actions)
})

test.each([
  ['host:team.*', 'team.one', true],
  ['host:team.*', 'team.one.two', true],
  ['host:team.*', 'team', false],
  ['host:team.*', 'teamster.one', false],
  ['host:.*', '.hidden', false],
  ['host:alice', 'alice.bot', false],
])('%s hosts %s: %s', (word, agent, hosts) => {
  expect(allows([word], 'host', agent)).toBe(hosts)
})

test('a token for one agent is for no other, and not for the server', () => {
  const one = principal(['admin'], ['alice'])
  expect(may(one, 'call', 'alice')).toBe(true)
  expect(may(one, 'call', 'bob')).toBe(false)
  expect(may(one, 'operate', undefined)).toBe(false)
})

test('others cannot give what reaches beyond their own sessions', () => {
  const words = ['read', 'admin', 'operate', 'host', 'host:alice', 'platform', 'service:x', 'service', '*', 'tools:*', 'host:\n']
  expect(foreignScopes(words)).toEqual(['read', 'tools:*'])
})

test.each([
  [['read'], undefined, ['read']],
  [['openid', 'profile'], undefined, ['openid', 'profile']],
  [['openid', 'profile'], ['read'], ['read']],
  [[], ['write'], ['write']],
  [['call', 'openid'], ['write'], ['call']],
  [['write'], ['read'], ['read']],
  [['write'], ['read', 'call'], ['read', 'call']],
  [['read'], ['call'], []],
  [['tool'], ['tools:*', 'read'], ['tool']],
  [['write', 'read'], ['read'], ['read']],
  [['tools:*'], ['tools:*'], ['tools:*']],
  [['tools:*'], ['write'], ['tools:*']],
  [['host:a'], ['host:*'], ['host:a']],
] as const)('%j within %j is %j', (words, list, left) => {
  expect(within(words, list)).toEqual(left)
})
