import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ThinkTags, type Piece } from './think-tags.ts'

function told(pieces: readonly string[]): { thought: string; text: string } {
  const tags = new ThinkTags(true)
  const out: Piece[] = [...pieces.flatMap((piece) => tags.add(piece)), ...tags.end()]
  const join = (thinking: boolean) =>
    out
      .filter((piece) => piece.thinking === thinking)
      .map(({ text }) => text)
      .join('')
  return { thought: join(true), text: join(false) }
}

test.each([
  ['<think>\nHm.</think>\n\nHello', 'Hm.', 'Hello'],
  ['\n <think>Hm.</think>Hello', 'Hm.', 'Hello'],
  ['<think></think>Hello', '', 'Hello'],
  ['Hello <think>Hm.</think>', '', 'Hello <think>Hm.</think>'],
  ['<thin ice', '', '<thin ice'],
  ['<think>never closed </thi', 'never closed </thi', ''],
  ['<think>a</think>b</think>c', 'a', 'b</think>c'],
  ['<thi', '', '<thi'],
  ['  ', '', '  '],
])('%j, wherever it is cut', (whole, thought, text) => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: whole.length })), (cuts) => {
      const places = [0, ...cuts.sort((a, b) => a - b), whole.length]
      const pieces = places.slice(1).map((end, index) => whole.slice(places[index], end))
      expect(told(pieces)).toEqual({ thought, text })
    }),
  )
})

test('white space is not waited out for ever', () => {
  const tags = new ThinkTags(true)
  expect(tags.add(' '.repeat(300))).toEqual([{ thinking: false, text: ' '.repeat(300) }])
})

test('what is thought is told before the thought ends', () => {
  const tags = new ThinkTags(true)
  expect(tags.add('<think>I think')).toEqual([{ thinking: true, text: 'I think' }])
})
