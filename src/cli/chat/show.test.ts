import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import type { ServerEvent } from '../../client/index.ts'
import { Page } from './page.ts'
import { show } from './show.ts'

function opened(isTTY: boolean) {
  const stream = (): PassThrough & NodeJS.WriteStream =>
    Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY }) as PassThrough & NodeJS.WriteStream
  const stdout = stream()
  const stderr = stream()
  const page = new Page({ stdout, stderr, paint: () => (format, text) => `<${String(format)}>${text}</>` })
  const events = [
    { type: 'thinking', content: 'let me ' },
    { type: 'thinking', content: 'see' },
    { type: 'response.delta', delta: { type: 'text', text: 'One \u001B[2Jmo' } },
    { type: 'response.delta', delta: { type: 'text', text: 'ment.' } },
    { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id: 'c', name: 'add', arguments: '{}' } } },
    { type: 'response.delta', delta: { type: 'tool_result', tool_result: { call_id: 'c', result: '"no"', is_error: true } } },
    { type: 'progress', target: 'response', step: 1, total_steps: 2 },
    { type: 'response.delta', delta: { type: 'text', text: 'So: ' } },
    { type: 'response.delta', delta: { type: 'image', image: 'AA==', content_id: 'i1' } },
    { type: 'response.delta', delta: { type: 'text', text: 'Done' } },
    { type: 'response.error', error: { code: 'internal', message: 'o\u001B]0;pwned\u0007h' } },
    { type: 'response.done', response: { output: [] } },
  ]
  for (const event of events) show(event as unknown as ServerEvent, page)
  return { stdout: stdout.read() as string, stderr: stderr.read() as string | null }
}

test('on a terminal everything has its place, and an agent cannot send escape sequences', () => {
  const { stdout, stderr } = opened(true)
  expect(stdout.split('\n')).toEqual([
    '<dim>let me </><dim>see</>',
    'One moment.',
    '<cyan>→ add {}</>',
    '<red>← "no"</>',
    '<dim>· step 1 of 2</>',
    'So: ',
    '[image i1]',
    'Done',
    '<red>internal: oh</>',
    '<dim>(no answer)</>',
    '',
  ])
  expect(stderr).toBeNull()
})

test('in a pipe the answer is as it came, and all else goes beside it', () => {
  const { stdout, stderr } = opened(false)
  expect(stdout).toBe('One \u001B[2Jmoment.So: \n[image i1]\nDone\n')
  expect(stderr).toBe(
    '<dim>let me </><dim>see</>\n<cyan>→ add {}</>\n<red>← "no"</>\n<dim>· step 1 of 2</>\n<red>internal: oh</>\n<dim>(no answer)</>\n',
  )
})

test('an agent that says everything with its end is shown, and one that said it before is not shown twice', () => {
  const stdout = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY: false }) as PassThrough & NodeJS.WriteStream
  const page = new Page({ stdout, stderr: stdout, paint: () => (_, text) => text })
  const done = { type: 'response.done', response: { output: [{ type: 'text', text: 'All at once' }] } }
  const said = { type: 'response.delta', delta: { type: 'text', text: 'All at once' } }
  for (const event of [{ type: 'response.created' }, done, { type: 'response.created' }, said, done]) {
    show(event as unknown as ServerEvent, page)
  }
  expect(stdout.read()).toBe('All at once\nAll at once\n')
})
