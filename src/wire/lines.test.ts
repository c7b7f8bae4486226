import { expect, test } from 'vitest'
import { lineReader, linesIn } from './lines.ts'

const TEXT = '{"a":1}\n\n{"ä":"öü€😀"}\r\nlast'
const LINES = ['{"a":1}', '', '{"ä":"öü€😀"}\r', 'last']

test.each([1, 2, 3, 5, 1024])('lines in pieces of %i bytes', (size) => {
  const bytes = new TextEncoder().encode(TEXT)
  const read = lineReader(1000)
  const lines: (string | undefined)[] = []
  for (let at = 0; at < bytes.length; at += size) lines.push(...read(bytes.subarray(at, at + size)))
  expect([...lines, ...read(undefined)]).toEqual(LINES)
  expect(read(undefined)).toEqual([])
})

test.each([1, 3, 1024])('a line that is too long is told once, and the next one is read: pieces of %i bytes', (size) => {
  const bytes = new TextEncoder().encode(`short\n${'x'.repeat(50)}\n12345678\n123456789\nend\n`)
  const read = lineReader(8)
  const lines: (string | undefined)[] = []
  for (let at = 0; at < bytes.length; at += size) lines.push(...read(bytes.subarray(at, at + size)))
  expect(lines).toEqual(['short', undefined, '12345678', undefined, 'end'])
})

test('the buffer that was read from may be used again', () => {
  const buffer = new TextEncoder().encode('abc')
  const read = lineReader(100)
  read(buffer)
  buffer.fill(0x21)
  expect(read(new TextEncoder().encode('d\n'))).toEqual(['abcd'])
})

function stream(chunks: readonly string[], end: () => void = () => undefined) {
  const input = {
    destroyed: false,
    async *[Symbol.asyncIterator]() {
      for (const chunk of chunks) yield new TextEncoder().encode(chunk)
      end()
    },
  }
  return input
}

test('the lines of a stream', async () => {
  const lines: (string | undefined)[] = []
  for await (const line of linesIn(stream(['on', 'e\n \n', 'far too long\ntwo']), 5)) lines.push(line)
  expect(lines).toEqual(['one', undefined, 'two'])
})

test('a stream that fails, and one that was destroyed', async () => {
  const fail = (): never => {
    throw new Error('broken')
  }
  const broken = linesIn(stream(['one\n'], fail), 5)
  expect(await broken.next()).toEqual({ done: false, value: 'one' })
  await expect(broken.next()).rejects.toThrow('broken')
  const left = linesIn({ ...stream(['one\ntw'], fail), destroyed: true }, 5)
  expect(await left.next()).toEqual({ done: false, value: 'one' })
  expect(await left.next()).toEqual({ done: true, value: undefined })
})
