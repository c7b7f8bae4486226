import { expect, test } from 'vitest'
import type { ContentItem } from '../../protocol/content.ts'
import { detailsIn, ReasoningDetails } from './reasoning-details.ts'

const thought = (signature: string | undefined): ContentItem => ({ type: 'thinking', thinking: '', ...(signature && { signature }) })

test('what is readable is told at once', () => {
  const details = new ReasoningDetails()
  const told = details.add([{ type: 'reasoning.summary', summary: 'In short.' }, { type: 'reasoning.encrypted', data: 'x' }, null, 'odd'])
  expect(told).toBe('In short.')
})

test('pieces are put together by index, also over several signatures', () => {
  const details = new ReasoningDetails()
  details.add([
    { type: 'reasoning.text', text: 'a', index: 0, id: null },
    { type: 'reasoning.text', text: 'b', index: 1 },
  ])
  details.add([{ type: 'reasoning.text', text: 'A', index: 0, id: 'r' }])
  const first = details.take()
  expect(details.take()).toBeUndefined()
  details.add([{ type: 'reasoning.text', signature: 's', index: 1 }])
  expect(detailsIn([thought(first), { type: 'text', text: 'Hi' }, thought(details.take())])).toEqual([
    { type: 'reasoning.text', text: 'aA', index: 0, id: 'r' },
    { type: 'reasoning.text', text: 'b', index: 1, signature: 's' },
  ])
})

test('without an index a piece goes on the last entry of its kind', () => {
  const details = new ReasoningDetails()
  details.add([
    { type: 'reasoning.text', text: 'a' },
    { type: 'reasoning.text', text: 'b' },
    { type: 'reasoning.encrypted', data: '1' },
    { type: 'reasoning.encrypted', data: '2' },
  ])
  expect(detailsIn([thought(details.take())])).toEqual([
    { type: 'reasoning.text', text: 'ab' },
    { type: 'reasoning.encrypted', data: '1' },
    { type: 'reasoning.encrypted', data: '2' },
  ])
})

test.each([[undefined], ['rs_1.gAAAA'], ['reasoning_details:not JSON'], ['reasoning_details:{}'], ['reasoning_details:[1]']])(
  'nothing is made of the signature %j',
  (signature) => {
    expect(detailsIn([thought(signature)])).toBeUndefined()
  },
)
