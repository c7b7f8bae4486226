import { expect, test } from 'vitest'
import { withSeconds } from './audio-seconds.ts'

/** A WAV file of 8,000 bytes a second. */
function wav(bytes: number): string {
  const file = Buffer.alloc(44 + bytes)
  file.write('RIFF')
  file.writeUInt32LE(8_000, 28)
  return file.toString('base64')
}

test.each([
  ['a WAV file by its header', { audio: wav(4_000), format: 'wav' }, 0.5],
  [
    'raw samples at their own rate',
    { audio: Buffer.alloc(32_000).toString('base64'), format: 'pcm16', sample_rate: 8_000, channels: 2 },
    1,
  ],
  ['a length that is told', { audio: { url: 'https://example.com/a.mp3' }, format: 'mp3', duration_ms: 1_250 }, 1.25],
  ['a header that is cut off', { audio: 'UklGRg==', format: 'wav' }, undefined],
  ['a rate of nothing', { audio: 'AAAA', format: 'pcm16', sample_rate: 0 }, undefined],
  ['a format that cannot be measured', { audio: 'AAAA', format: 'opus' }, undefined],
  ['an address', { audio: 'https://example.com/a.pcm', format: 'pcm16' }, undefined],
])('%s', (_, sound, seconds) => {
  expect(withSeconds(undefined, [], [{ type: 'audio', ...sound }])?.audio?.output_seconds).toBe(seconds)
})
