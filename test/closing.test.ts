import { once } from 'node:events'
import { expect, test } from 'vitest'
import { startChild } from './support/child.ts'
import { json } from './support/raw.ts'

const from = (path: string): string => JSON.stringify(new URL(`../dist/${path}`, import.meta.url).href)

/** A program that serves the demo agent until it is told to close, and has nothing else to do. */
const PROGRAM = `
import { demo } from ${from('agents/demo/index.js')}
import { serve } from ${from('serve/index.js')}
const server = await serve(demo(), { port: 0, data: 'memory' })
process.once('SIGTERM', () => void server.close({ graceMs: 0 }).then(() => console.log('closed')))
console.log(server.url)
`

const TOOLS = 'https://uamp.dev/a2a/tools/v1'
const weather = { name: 'weather', parameters: { type: 'object' } }
const a2a = (text: string, metadata?: object) => ({ message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text }], metadata } })
const a2aHeaders = { 'a2a-version': '1.0', 'a2a-extensions': TOOLS }
const waits = { task: { status: { state: 'TASK_STATE_INPUT_REQUIRED' } } }

test.each<[string, string, object, object]>([
  ['an A2A task for an approval', '/a2a/rest/message:send', a2a('/approve it'), waits],
  [
    'an A2A task for a tool',
    '/a2a/rest/message:send',
    a2a('/tool weather {}', { [TOOLS]: { tools: [{ type: 'function', function: weather }] } }),
    waits,
  ],
  ['a response for an approval', '/v1/responses', { input: '/approve it' }, { output: [{ type: 'mcp_approval_request' }] }],
  [
    'a response for a tool',
    '/v1/responses',
    { input: '/tool weather {}', tools: [{ type: 'function', ...weather }] },
    { output: [{ type: 'function_call' }] },
  ],
])('a program ends by itself once its server has closed, although %s waits', async (_, path, body, asked) => {
  const child = await startChild('memory', { program: ['--input-type=module', '-e', PROGRAM] })
  expect(await json(`${child.url}${path}`, body, { headers: a2aHeaders })).toMatchObject(asked)
  const [end] = [once(child.process, 'exit'), child.process.kill('SIGTERM')]
  expect(await end).toEqual([0, null])
})
