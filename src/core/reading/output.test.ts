import { expect, test } from 'vitest'
import type { Draft } from '../../protocol/events.ts'
import { text } from '../agent-kit/drafts.ts'
import { Output } from './output.ts'

const sound: Draft = { type: 'audio.delta', audio: 'AAAA', format: 'pcm16' }
const word = (transcript: string): Draft => ({ type: 'transcript.delta', transcript })

function itemsOf(...drafts: Draft[]) {
  const output = new Output()
  for (const draft of drafts) output.add(draft)
  return output.items()
}

test('speech that comes in pieces stands where it began', () => {
  const speech = { type: 'audio', audio: 'AAAA', format: 'pcm16', transcript: 'Hello.' }
  expect(itemsOf(sound, word('Hello.'), text('See the list.'))).toMatchObject([speech, { type: 'text', text: 'See the list.' }])
  expect(itemsOf(text('List: '), sound, word('Hello.'), text('Bye.'))).toMatchObject([{ type: 'text', text: 'List: Bye.' }, speech])
  expect(itemsOf(word('Hello.'), text('Bye.'))).toEqual([
    { type: 'text', text: 'Hello.' },
    { type: 'text', text: 'Bye.' },
  ])
})
