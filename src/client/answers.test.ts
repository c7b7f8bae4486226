import { expect, test } from 'vitest'
import type { ServerEvent } from '../protocol/events.ts'
import { Answers, type AnswerOptions } from './answers.ts'
import type { ClientDraft } from './drafts.ts'

/** Gathers what is sent, and resolves `sent(n)` when there are n answers. */
function answers(options: Partial<AnswerOptions>) {
  const all: ClientDraft[] = []
  let wake: () => void = () => undefined
  const subject = new Answers({
    tools: {},
    onApproval: undefined,
    resumed: false,
    send: async (event) => {
      all.push(event)
      wake()
    },
    ...options,
  })
  const sent = async (count: number): Promise<ClientDraft[]> => {
    while (all.length < count) await new Promise<void>((resolve) => (wake = resolve))
    return all
  }
  return { subject, sent }
}

const call = (name: string, args: string, id = name): ServerEvent => ({
  type: 'tool.call',
  event_id: `e-${id}`,
  response_id: 'r',
  call_id: id,
  name,
  arguments: args,
})
const done: ServerEvent = { type: 'response.cancelled', event_id: 'd', response_id: 'r' }
const marker = call('marker', '{}')

test('tools run in parallel; what they return or throw is sent as JSON', async () => {
  let release: () => void = () => undefined
  const gate = new Promise<void>((resolve) => (release = resolve))
  const { subject, sent } = answers({
    tools: {
      slow: { run: async ({ x }) => (await gate, { x }) },
      quick: { run: () => (release(), 'fine') },
      none: { run: () => undefined },
      broken: {
        run: () => {
          throw new Error('no luck')
        },
      },
    },
  })
  for (const name of ['slow', 'quick', 'none', 'broken']) subject.see(call(name, '{"x":1}'))
  const results = Object.fromEntries((await sent(4)).map((event) => (event.type === 'tool.result' ? [event.call_id, event] : [])))
  expect(results).toEqual({
    slow: { type: 'tool.result', call_id: 'slow', result: '{"x":1}' },
    quick: { type: 'tool.result', call_id: 'quick', result: '"fine"' },
    none: { type: 'tool.result', call_id: 'none', result: 'null' },
    broken: { type: 'tool.result', call_id: 'broken', result: '{"error":"no luck"}', is_error: true },
  })
})

test('arguments that are not JSON are an error of the call', async () => {
  const { subject, sent } = answers({ tools: { a: { run: () => 1 } } })
  subject.see(call('a', '{oops'))
  expect(await sent(1)).toMatchObject([{ call_id: 'a', is_error: true }])
})

test('what is not ours is left alone: unknown names, inherited ones, tools without a function', async () => {
  const { subject, sent } = answers({ tools: { manual: {}, marker: { run: () => 1 } } })
  for (const name of ['unknown', 'constructor', '__proto__', 'manual']) subject.see(call(name, '{}'))
  subject.see(marker)
  expect((await sent(1)).length).toBe(1)
})

test('the end of the response aborts its tools, and their results are not sent', async () => {
  let aborted: Promise<unknown> | undefined
  const { subject, sent } = answers({
    tools: {
      waits: {
        run: (_, { signal }) => (aborted = new Promise((resolve) => signal.addEventListener('abort', () => resolve('stopped')))),
      },
      marker: { run: () => 'after' },
    },
  })
  subject.see(call('waits', '{}'))
  subject.see(done)
  expect(await aborted).toBe('stopped')
  subject.see(marker)
  expect(await sent(1)).toMatchObject([{ call_id: 'marker' }])
})

test('approvals are asked of the application; its failure is a no', async () => {
  const { subject, sent } = answers({
    onApproval: ({ message }) => {
      if (message === 'broken') throw new Error('dialog closed')
      return message === 'silent' ? (undefined as never) : message === 'good'
    },
  })
  for (const message of ['good', 'bad', 'broken', 'silent'])
    subject.see({ type: 'x.approval.request', event_id: 'e', approval_id: message, message })
  const results = await sent(4)
  expect(results.map((event) => event.type === 'x.approval.response' && [event.approval_id, event.approved])).toEqual(
    expect.arrayContaining([
      ['good', true],
      ['bad', false],
      ['broken', false],
      ['silent', false],
    ]),
  )
})

test('of a replay only what is still open is answered', async () => {
  const ran: string[] = []
  const run = (_: unknown, { call_id }: { readonly call_id: string }): void => void ran.push(call_id)
  const { subject, sent } = answers({ resumed: true, tools: { old: { run }, open: { run } } })
  subject.see(call('old', '{}'))
  subject.see(done)
  subject.see(call('open', '{}'))
  expect(ran).toEqual([])
  await sent(1)
  expect(ran).toEqual(['open'])
})
