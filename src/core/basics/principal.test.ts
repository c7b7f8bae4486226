import { expect, test } from 'vitest'
import { checkMay } from './principal.ts'

const access = { authorize: () => false }

test('whoever may not do something is told so, with or without a token', () => {
  const asked = { action: 'host', agent: 'helper' } as const
  const alice = { tenant: 'default', id: 'alice', scopes: [] }
  expect(() => checkMay(access, alice, asked)).toThrow('This token may not host helper')
  expect(() => checkMay(access, { ...alice, id: 'anonymous' }, asked)).toThrow('Nobody without a token of this server may host helper')
})
