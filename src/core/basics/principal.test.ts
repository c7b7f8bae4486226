import { expect, test } from 'vitest'
import { callerName, checkMay } from './principal.ts'

const access = { authorize: () => false }

test('whoever may not do something is told so, with or without a token', () => {
  const asked = { action: 'host', agent: 'helper' } as const
  const alice = { tenant: 'default', id: 'alice', scopes: [] }
  expect(() => checkMay(access, alice, asked)).toThrow('This token may not host helper')
  expect(() => checkMay(access, { ...alice, id: 'anonymous' }, asked)).toThrow('Nobody without a token of this server may host helper')
})

test('a caller of an issuer cannot have the name of one of this server', () => {
  const caller = { tenant: 'default', id: 'alice', scopes: [] }
  expect(callerName(caller)).toBe('alice')
  expect(callerName({ ...caller, id: 'anonymous' })).toBeUndefined()
  const known = { ...caller, id: 'any', issuer: 'https://login.example/', subject: 'alice' }
  expect(callerName(known)).toBe('https://login.example/alice')
  expect(callerName({ ...known, subject: 'a/b%2Fc' })).toBe('https://login.example/a%2Fb%252Fc')
})
