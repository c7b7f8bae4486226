import { defineAgent } from 'uamp'
import { serve } from 'uamp/server/node'

const hello = defineAgent('hello', async function* (turn) {
  const name = turn.messages.at(-1)?.content ?? 'you'
  for (const text of ['Hello, ', name, '!']) yield { type: 'response.delta', delta: { type: 'text', text } }
})

await serve(hello, { port: Number(process.env['PORT'] ?? 8787) })
