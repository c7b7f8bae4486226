import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import { WebSocket } from 'ws'

const url = process.argv[2] ?? 'http://localhost:8787'

const response = await fetch(`${url}/plain`, { method: 'POST', body: '/count 5' })
assert.equal(await response.text(), '1 2 3 4 5')

// Whoever leaves stops the agent.
const leave = new AbortController()
const endless = await fetch(`${url}/agents/demo/plain`, { method: 'POST', body: '/count 1000000000 1', signal: leave.signal })
await endless.body?.getReader().read()
leave.abort()
while (!(await (await fetch(`${url}/metrics`)).text()).includes('uamp_open_responses 0')) await setTimeout(20)

const socket = new WebSocket(`${url.replace('http', 'ws')}/plain`)
const pieces: string[] = []
await new Promise<void>((resolve, reject) => {
  socket.once('error', reject)
  socket.once('open', () => socket.send('/count 3'))
  socket.on('message', (data) => {
    pieces.push(String(data))
    if (pieces.length === 3) resolve()
  })
})
socket.close()
assert.deepEqual(pieces, ['1', ' 2', ' 3'])
console.log('both routes answer')
