import { expect, test } from 'vitest'
import type { ContentItem } from '../../protocol/content.ts'
import type { Draft, ServerEvent } from '../../protocol/events.ts'
import { Entry, Slice, Stamp } from '../log/entry.ts'
import { ResponseFold } from './response-fold.ts'

/** Writes down what it is called with. */
class Noted extends ResponseFold {
  readonly told: string[] = []

  text(text: string): void {
    if (this.running) this.told.push(text)
  }

  protected get silent(): boolean {
    return this.told.length < 2
  }

  protected begin(): void {
    this.told.push('begins')
  }

  protected item(item: ContentItem): void {
    this.told.push(`item ${item.type}`)
  }

  protected tell({ type }: ServerEvent): void {
    this.told.push(this.ended ? `ends with ${type}` : type)
  }
}

/** A log, each event with its response. */
function fold(...events: readonly (readonly [response: string, event: Draft | string])[]): Noted {
  const stamps = events.map(([response]) => new Stamp('sess_1', response))
  const items = events.map(([, event], index) => (typeof event === 'string' ? event : new Entry(stamps[index] as Stamp, index + 1, event)))
  const noted = new Noted('mine')
  new Slice(1, items, stamps).visit(noted)
  return noted
}

const created: Draft = { type: 'response.created' }
const done = (output: ContentItem[], more: object = {}): Draft => ({
  type: 'response.done',
  response: { id: 'mine', status: 'completed', output, ...more },
})

test('of a log with several responses one is told', () => {
  const text: ContentItem = { type: 'text', text: 'Yes' }
  const { told } = fold(
    ['other', created],
    ['other', 'No'],
    ['other', done([text])],
    ['mine', created],
    ['mine', 'Yes'],
    ['mine', done([text])],
    ['next', created],
    ['next', 'Maybe'],
  )
  expect(told).toEqual(['begins', 'Yes', 'ends with response.done'])
})

test('a response whose beginning was lost with the process begins with its end', () => {
  const { told } = fold(['other', done([])], ['mine', { type: 'response.error', error: { code: 'interrupted', message: '' } }])
  expect(told).toEqual(['begins', 'ends with response.error'])
})

test('an output of which nothing was streamed is told before the end', () => {
  const output: ContentItem[] = [
    { type: 'thinking', thinking: 'Hm' },
    { type: 'text', text: 'Yes' },
  ]
  expect(fold(['mine', created], ['mine', done(output)]).told).toEqual(['begins', 'item thinking', 'item text', 'ends with response.done'])
  expect(fold(['mine', created], ['mine', 'Yes'], ['mine', done(output)]).told).toEqual(['begins', 'Yes', 'ends with response.done'])
})

test('usage is the sum of its increments, unless the end says it', () => {
  const spent: Draft = { type: 'usage.delta', delta: { input_tokens: 1, output_tokens: 2 } }
  const before = [['mine', created] as const, ['mine', spent] as const, ['mine', spent] as const]
  expect(fold(...before, ['mine', done([])]).usage).toMatchObject({ input_tokens: 2, output_tokens: 4 })
  expect(fold(...before, ['mine', done([], { usage: { input_tokens: 9 } })]).usage).toEqual({ input_tokens: 9 })
})

test('what the client is asked is kept until the end', () => {
  const asked: Draft = { type: 'tool.call', call_id: 'c', name: 'look', arguments: '{}' }
  const { told, questions } = fold(['mine', created], ['mine', asked], ['mine', done([])])
  expect(questions).toMatchObject([asked])
  expect(told).toEqual(['begins', 'tool.call', 'ends with response.done'])
})
