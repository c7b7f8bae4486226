import { expect, test } from 'vitest'
import type { ContentItem } from '../../protocol/content.ts'
import { ContentBlock, toBlock } from './blocks.ts'

const image: ContentItem = { type: 'image', image: 'iVBORw0KGgo=', description: 'A dot' }
const file: ContentItem = { type: 'file', file: 'aGk=', filename: 'a.txt', mime_type: 'text/plain' }
const nothing = { image: false, audio: false, embeddedContext: false }

test.each<[string, ContentItem, unknown]>([
  ['text', { type: 'text', text: 'Hi' }, { type: 'text', text: 'Hi' }],
  ['a picture', image, { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' }],
  ['a file', file, { type: 'resource', resource: { uri: 'uamp://content/a.txt', blob: 'aGk=', mimeType: 'text/plain' } }],
  [
    'what is elsewhere',
    { type: 'image', image: { url: 'https://a.example/b.png' } },
    { type: 'resource_link', uri: 'https://a.example/b.png', name: 'image', mimeType: 'image/png' },
  ],
])('%s', (_, item, block) => {
  expect(toBlock(item)).toEqual(block)
  expect(ContentBlock.safeParse(block).success).toBe(true)
})

test('what is no content is no block', () => {
  expect(toBlock({ type: 'thinking', thinking: 'hm' })).toBeUndefined()
})

test('whoever takes no media is told of it', () => {
  expect(toBlock(image, nothing)).toEqual({ type: 'text', text: '[image: A dot, which cannot be shown here]' })
  expect(toBlock(image, { ...nothing, embeddedContext: true })).toMatchObject({ type: 'resource' })
})
