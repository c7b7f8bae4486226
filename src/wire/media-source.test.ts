import { expect, test } from 'vitest'
import type { MediaItem } from '../protocol/content.ts'
import { mediaSource } from './media-source.ts'

const cases: readonly [name: string, item: MediaItem, expected: unknown][] = [
  ['base64 of a known picture', { type: 'image', image: 'iVBORw0K' }, { data: 'iVBORw0K', mime: 'image/png' }],
  ['a format wins over a guess', { type: 'image', image: 'iVBORw0K', format: 'jpg' }, { data: 'iVBORw0K', mime: 'image/jpeg' }],
  ['a data URL says its type', { type: 'image', image: 'data:image/gif;base64,AA==' }, { data: 'AA==', mime: 'image/gif' }],
  ['a data URL as an object', { type: 'image', image: { url: 'data:image/webp;base64,AA==' } }, { data: 'AA==', mime: 'image/webp' }],
  [
    'a URL',
    { type: 'video', video: { url: 'https://a.example/b.MOV#t=1' } },
    { url: 'https://a.example/b.MOV#t=1', mime: 'video/quicktime' },
  ],
  ['a URL as text', { type: 'image', image: 'https://a.example/b' }, { url: 'https://a.example/b', mime: 'image/png' }],
  ['a path that only this server knows', { type: 'image', image: { url: '/api/content/1' } }, undefined],
  [
    'samples become a WAV file',
    { type: 'audio', audio: 'AAAA', format: 'pcm16' },
    { data: expect.stringMatching(/^UklGR/), mime: 'audio/wav' },
  ],
  ['samples that are not base64', { type: 'audio', audio: '*', format: 'pcm16' }, undefined],
  ['a file has its own type', { type: 'file', file: 'AA==', filename: 'a', mime_type: 'text/csv' }, { data: 'AA==', mime: 'text/csv' }],
]

test.each(cases)('%s', (_, item, expected) => {
  expect(mediaSource(item)).toEqual(expected)
})
