// A server in a process of its own, so that it can be killed: the data folder is its argument, and its log, of every level, goes to
// standard error.
import { inspect } from 'node:util'
import { serve } from '../../dist/serve/index.js'
import { defineAgent, text } from '../../dist/index.js'

const bot = defineAgent('bot', async function* (turn) {
  const said = turn.messages.findLast(({ role }) => role === 'user')?.content ?? ''
  if (said.includes('tool')) await turn.ask('tool.call', { name: 'weather', arguments: '{}', call_id: 'call_1' })
  if (said.includes('fail')) throw new Error('It failed', { cause: { config: turn.config, messages: turn.messages } })
  yield text('fine')
})

const log = (level, message, fields) =>
  process.stderr.write(`${level} ${message} ${inspect(fields, { depth: 20, maxStringLength: 10_000 })}\n`)
const server = await serve(bot, { port: 0, data: process.argv[2], log })
process.stdout.write(`${server.url}\n`)
