import { expect, test, vi } from 'vitest'
import { gatherInput, type InputEvent } from './gather-input.ts'

const chunk = (audio: string, is_final = false): InputEvent => ({ type: 'input.audio', event_id: 'e', audio, format: 'pcm16', is_final })
const audioOf = (events: readonly InputEvent[]) =>
  gatherInput(events, () => 'id').messages.flatMap(({ content_items }) =>
    (content_items ?? []).map((item) => (item.type === 'audio' ? item.audio : item.type)),
  )

test('padded chunks are decoded once each, however many there are', () => {
  const decode = vi.spyOn(globalThis, 'atob')
  const audio = audioOf(Array.from({ length: 500 }, () => chunk('AA==')))
  const decoded = decode.mock.calls.reduce((sum, [text]) => sum + text.length, 0)
  decode.mockRestore()
  expect(audio).toEqual([Buffer.alloc(500).toString('base64')])
  expect(decoded).toBeLessThanOrEqual(500 * 4)
})

test('a recording ends with is_final, and with whatever is no audio', () => {
  const text: InputEvent = { type: 'input.text', event_id: 't', text: 'x' }
  expect(audioOf([chunk('AAAA'), chunk('BBBB', true), chunk('CCCC'), text, chunk('DDDD'), chunk('EE==')])).toEqual([
    'AAAABBBB',
    'CCCC',
    'text',
    'DDDDEE==',
  ])
  const url = { ...chunk(''), audio: { url: 'https://example.com/a.wav' } } as InputEvent
  expect(audioOf([chunk('AAAA'), url, chunk('BBBB')])).toEqual(['AAAA', 'BBBB'])
})

test('what is no base64 is the mistake of whoever sent it', () => {
  expect(() => audioOf([chunk('AA=='), chunk('%%%%')])).toThrow(expect.objectContaining({ code: 'invalid_request' }))
})
