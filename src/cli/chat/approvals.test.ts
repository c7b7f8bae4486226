import { expect, test } from 'vitest'
import type { EventOf } from '../../client/index.ts'
import { Approvals } from './approvals.ts'
import type { Console, Question } from './input/console.ts'

test.each([
  ['May "add" run?', { name: 'add', arguments: '{"a":1}' }, 'May "add" run?\n  add {"a":1}'],
  ['May "now" run?', { name: 'now', arguments: '{}' }, 'May "now" run?'],
  ['May it run?', { name: 'now', arguments: '{}' }, 'May it run?\n  now {}'],
  ['Go on?', undefined, 'Go on?'],
])('the question %j about %o is asked as %j', async (message, call, text) => {
  const asked: string[] = []
  const choose = (question: Question): Promise<undefined> => {
    asked.push(question.text)
    return Promise.resolve(undefined)
  }
  const request = { type: 'x.approval.request', approval_id: 'a', message, ...(call && { tool_call: { id: 'c', ...call } }) }
  const approvals = new Approvals({ choose } as unknown as Console)
  const answer = await approvals.decide(request as unknown as EventOf<'x.approval.request'>, new AbortController().signal)
  expect(answer).toMatchObject({ approval_id: 'a', approved: false })
  expect(asked).toEqual([text])
})
