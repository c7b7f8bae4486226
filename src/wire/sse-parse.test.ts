import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseSse, sseParser, type ParsedSse } from './sse-parse.ts'

const streams: readonly (readonly [name: string, text: string, frames: readonly ParsedSse[]])[] = [
  ['one line of data', 'data: a\n\n', [{ data: 'a' }]],
  ['several lines of data', 'data: a\ndata:\ndata: c\n\n', [{ data: 'a\n\nc' }]],
  [
    'CRLF',
    'id: 1\r\ndata: a\r\n\r\ndata: b\r\n\r\n',
    [
      { data: 'a', id: '1' },
      { data: 'b', id: '1' },
    ],
  ],
  ['CR', 'data: a\r\rdata: b\r\r', [{ data: 'a' }, { data: 'b' }]],
  ['mixed breaks', 'data: a\r\n\ndata: b\n\rdata: c\r\r\n', [{ data: 'a' }, { data: 'b' }, { data: 'c' }]],
  ['comments and unknown fields', ': ping\n\nretry: 5\nwhat: ever\ndata: a\n\n', [{ data: 'a' }]],
  ['only one space is taken off', 'data:  a\ndata:b\n\n', [{ data: ' a\nb' }]],
  ['a field without a colon', 'data\n\n', [{ data: '' }]],
  ['a name', 'event: x\ndata: a\n\ndata: b\n\n', [{ data: 'a', event: 'x' }, { data: 'b' }]],
  [
    'an id stays until the next',
    'id: 7\n\ndata: a\n\nid\ndata: b\n\n',
    [
      { data: 'a', id: '7' },
      { data: 'b', id: '' },
    ],
  ],
  ['an id with NUL is ignored', 'id: a\0b\ndata: a\n\n', [{ data: 'a' }]],
  ['no data, no event', 'event: x\n\ndata: a\n\n', [{ data: 'a' }]],
  ['a byte order mark', '\uFEFFdata: a\n\n', [{ data: 'a' }]],
  ['what the end cuts short', 'data: a\n\ndata: b\n', [{ data: 'a' }]],
  ['characters of several bytes', 'data: {"text":"žluťoučký 🐎"}\n\n', [{ data: '{"text":"žluťoučký 🐎"}' }]],
]

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

function cut(all: Uint8Array, size: number): ReadableStream<Uint8Array> {
  let at = 0
  return new ReadableStream({
    pull(controller) {
      if (at >= all.length) return controller.close()
      controller.enqueue(all.slice(at, (at += size)))
    },
  })
}

async function collect(body: ReadableStream<Uint8Array>): Promise<ParsedSse[]> {
  const frames: ParsedSse[] = []
  for await (const frame of parseSse(body)) frames.push(frame)
  return frames
}

for (const size of [1, 2, 3, 5, 1024]) {
  test.each(streams)(`in chunks of ${size}: %s`, async (_, text, frames) => {
    expect(await collect(cut(bytes(text), size))).toEqual(frames)
  })
}

describe('wherever a stream is cut in two', () => {
  test.each(streams)('%s', async (_, text, frames) => {
    const all = bytes(text)
    for (let at = 0; at <= all.length; at++) {
      const parts = [all.slice(0, at), all.slice(at)]
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          for (const part of parts) controller.enqueue(part)
          controller.close()
        },
      })
      expect(await collect(body)).toEqual(frames)
    }
  })
})

test('any text in any cut gives what it gives in one piece', () => {
  const piece = fc.constantFrom('data:', 'data: x', 'id: 1', 'event: e', ':', '\r', '\n', '\r\n', '\n\n', ' ', 'é')
  fc.assert(
    fc.property(fc.array(fc.tuple(piece, fc.boolean())), (pieces) => {
      const whole = sseParser()(pieces.map(([text]) => text).join(''))
      const parse = sseParser()
      let chunk = ''
      const parts: ParsedSse[] = []
      for (const [text, end] of pieces) {
        chunk += text
        if (end) parts.push(...parse(chunk.slice(0, -1)), ...parse(chunk.slice(-1)))
        if (end) chunk = ''
      }
      expect([...parts, ...parse(chunk)]).toEqual(whole)
    }),
  )
})

test('an event without end is given up, not kept', () => {
  const parse = sseParser({ limit: 100 })
  parse('data: ' + 'x'.repeat(60) + '\n')
  expect(() => parse('data: ' + 'x'.repeat(60))).toThrow(RangeError)
})

test('leaving the loop cancels the body', async () => {
  let cancelled = false
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(bytes('data: a\n\n')),
    cancel: () => void (cancelled = true),
  })
  for await (const frame of parseSse(body)) {
    expect(frame.data).toBe('a')
    break
  }
  expect(cancelled).toBe(true)
})
