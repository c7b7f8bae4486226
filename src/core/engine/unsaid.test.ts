import { expect, test } from 'vitest'
import type { ContentItem } from '../../protocol/content.ts'
import { restOf } from './unsaid.ts'

const text = (words: string): ContentItem => ({ type: 'text', text: words })
const thought = (words: string): ContentItem => ({ type: 'thinking', thinking: words })
const image = (data: string): ContentItem => ({ type: 'image', image: data })
const call = (id: string): ContentItem => ({ type: 'tool_call', tool_call: { id, name: 'look', arguments: '{}' } })
const SOUND: ContentItem = { type: 'audio', audio: 'AAAA', format: 'pcm16' }
const SILENT = { sound: false, words: '' }

test.each<[string, ContentItem[], ContentItem[], ContentItem[]]>([
  ['everything', [thought('Hm'), text('Yes'), image('a')], [], [thought('Hm'), text('Yes'), image('a')]],
  ['nothing that was said', [text('Yes'), image('a'), call('1')], [image('a'), call('1'), text('Yes')], []],
  ['the rest of a text, over several pieces', [text('One '), text('two '), text('three')], [text('One tw')], [text('o '), text('three')]],
  ['the kinds that were not said', [thought('Hm'), text('Yes')], [thought('Hm')], [text('Yes')]],
  ['one more picture', [image('a'), image('b')], [image('a')], [image('b')]],
  ['calls by their id', [call('1'), call('2')], [call('2')], [call('1')]],
  ['nothing where another text was said', [text('Yes')], [text('No')], []],
])('what is given with the end is said: %s', (_, given, said, unsaid) => {
  expect(restOf(given, said, SILENT)).toEqual({ unsaid, spoken: [] })
})

test('what was spoken is kept, and not said again', () => {
  expect(restOf([SOUND, text('Yes')], [], { sound: true, words: 'Yes' })).toEqual({ unsaid: [], spoken: [SOUND, text('Yes')] })
  expect(restOf([SOUND, text('No')], [], { sound: true, words: 'Yes' })).toEqual({ unsaid: [text('No')], spoken: [SOUND] })
})
