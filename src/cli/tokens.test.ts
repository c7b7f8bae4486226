import { expect, test } from 'vitest'
import { parseTokens } from './tokens.ts'

test('a token keeps its name, whatever that is', () => {
  const tokens = parseTokens(['__proto__:secret-0123456789', 'ann:other-0123456789'], '--token')
  expect(Object.entries(tokens)).toEqual([
    ['__proto__', 'secret-0123456789'],
    ['ann', 'other-0123456789'],
  ])
})
