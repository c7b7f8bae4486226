import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Draft } from '../../protocol/events.ts'
import type { Artifact, Message, Told } from './model.ts'
import { Said } from './said.ts'

const of = { taskId: 't', contextId: 'c', metadata: undefined }
const artifact = (text: string, id = 'a'): Artifact => ({
  id,
  name: undefined,
  description: undefined,
  parts: [{ text }],
  metadata: undefined,
})
const piece = (text: string, append = true): Told => ({ kind: 'artifact', ...of, artifact: artifact(text), append })
const task = (...texts: string[]): Told & { kind: 'task' } => ({
  kind: 'task',
  ...of,
  status: { state: 'working', message: undefined },
  artifacts: texts.map((text, index) => artifact(text, index === 0 ? 'a' : `a${index}`)),
  history: [],
})
const message = (text: string, id?: string): Message => ({
  id,
  role: 'agent',
  parts: [{ text }],
  taskId: undefined,
  contextId: undefined,
  metadata: undefined,
  extensions: [],
})

function told(...events: Told[]): string[] {
  const said = new Said(() => 'id')
  const out: Draft[] = []
  for (const event of events) said.take(event, out)
  expect(said.text).toBe(out.map(textOf).join(''))
  return out.map(textOf)
}

function textOf(draft: Draft): string {
  return draft.type === 'response.delta' && draft.delta.type === 'text' ? draft.delta.text : draft.type
}

test.each<[string, Told[], string[]]>([
  ['pieces', [piece('a', false), piece('b'), piece('c')], ['a', 'b', 'c']],
  ['pieces, then the whole', [piece('a', false), piece('b'), task('ab')], ['a', 'b']],
  ['the whole, then more', [piece('a', false), task('abc'), piece('d')], ['a', 'bc', 'd']],
  [
    'a task that lags, then what it lacks',
    [piece('a', false), piece('b'), piece('c'), task('a'), piece('b'), piece('c'), piece('d')],
    ['a', 'b', 'c', 'd'],
  ],
  ['a piece that is known by half', [piece('abc', false), task('ab'), piece('cd')], ['abc', 'd']],
  ['another text', [piece('draft', false), piece('final', false), task('final')], ['draft', '\n\nfinal']],
  ['another text, that grows', [piece('draft', false), piece('fin', false), piece('al'), task('final')], ['draft', '\n\nfin', 'al']],
  ['two artifacts', [task('one', 'two'), task('one', 'two')], ['one', '\n\ntwo']],
  ['nothing', [piece('', false), piece(''), task('')], []],
])('%s', (_, events, texts) => {
  expect(told(...events)).toEqual(texts)
})

test('however it is cut, repeated and caught up with, a text is told once and whole', () => {
  const cuts = fc.array(fc.record({ length: fc.nat(4), look: fc.boolean(), behind: fc.nat(6) }), { maxLength: 20 })
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 40 }), cuts, (text, steps) => {
      const events: Told[] = []
      let at = 0
      for (const { length, look, behind } of steps) {
        events.push(piece(text.slice(at, at + length), at > 0))
        at = Math.min(text.length, at + length)
        if (!look) continue
        // A task as it was a little ago: the pieces behind that come again.
        at = Math.max(0, at - behind)
        events.push(task(text.slice(0, at)))
      }
      events.push(task(text))
      expect(told(...events).join('')).toBe(text)
    }),
  )
})

test('what was told before is skipped, and what follows it is not', () => {
  const said = new Said(() => 'id')
  const question = message('Which?', 'm1')
  said.skip({ ...task('before'), status: { state: 'input-required', message: question } })
  const out: Draft[] = []
  said.take(task('before', 'now'), out)
  said.message(question, out)
  expect(out.map(textOf)).toEqual(['now'])
})

test('an end that repeats what was said says nothing', () => {
  const said = new Said(() => 'id')
  const out: Draft[] = []
  said.take(piece('All is well. ', false), out)
  said.message(message('is well.'), out)
  said.message(message('Bye', 'm'), out)
  said.message(message('Bye', 'm'), out)
  expect(out.map(textOf)).toEqual(['All is well. ', '\n\nBye'])
})

test('an agent that never stops making artifacts is given up', () => {
  const said = new Said(() => 'id')
  const flood = (): void => {
    for (let n = 0; ; n++) said.take({ kind: 'artifact', ...of, artifact: artifact('', `${n}`), append: false }, [])
  }
  expect(flood).toThrow('more than 10000 artifacts')
})
