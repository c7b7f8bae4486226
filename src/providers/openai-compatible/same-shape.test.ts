import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SameShape } from './same-shape.ts'

const chunk = (content: string, id = 'a') => JSON.stringify({ id, choices: [{ index: 0, delta: { content }, finish_reason: null }] })

test('a chunk like the one before is told without parsing it, any other is not', () => {
  const shape = new SameShape()
  expect(shape.textOf(chunk('one'))).toBeUndefined()
  shape.learn(chunk('one'), 'one')
  expect(shape.textOf(chunk(' two'))).toBe(' two')
  for (const other of [chunk('"'), chunk('a\nb'), chunk('three', 'b'), chunk(''), '[DONE]', '']) expect(shape.textOf(other)).toBeUndefined()
  expect(shape.textOf(chunk('four'))).toBe('four')
})

test('where no two chunks are alike, they are no longer compared', () => {
  const shape = new SameShape()
  for (let n = 0; n < 10; n++) shape.learn(chunk('x', String(n)), 'x')
  expect(shape.textOf(chunk('y', '3'))).toBe('y')
  expect(shape.textOf(chunk('y', '9'))).toBeUndefined()
})

test('what it says is what parsing says', () => {
  const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('"', '"}', '","x":"', '\\', '\\"', '"content":"', 'a"content":"b'))
  fc.assert(
    fc.property(fc.array(text), fc.constantFrom('a', '"content":"', '\\'), (texts, id) => {
      const shape = new SameShape()
      for (const content of texts) {
        const data = chunk(content, id)
        const told = shape.textOf(data)
        if (told === undefined) shape.learn(data, content)
        else expect(told).toBe(content)
      }
    }),
  )
})
