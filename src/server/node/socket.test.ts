import type { WebSocket } from 'ws'
import { socketContract } from '../../../test/contract/socket.ts'
import type { Peer } from '../../../test/contract/socket.ts'
import { testServer } from '../../../test/support/test-server.ts'

const unlimited = { messagesPerSecond: 1e9, messageBurst: 1e9 }

socketContract('node', async (handle) => {
  const { connect } = await testServer({ limits: unlimited, routes: [{ method: 'WS', path: '/socket', access: 'request', handle }] })
  return peer(connect('/socket'))
})

async function peer(client: WebSocket): Promise<Peer> {
  const inbox: string[] = []
  const readers: ((text: string) => void)[] = []
  client.on('message', (data) => {
    const text = String(data)
    const reader = readers.shift()
    if (reader) reader(text)
    else inbox.push(text)
  })
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    client.once('close', (code, reason) => resolve({ code, reason: String(reason) }))
  })
  client.on('error', () => {})
  await new Promise((resolve) => client.once('open', resolve))
  return {
    send: (message) => client.send(message),
    get unsent() {
      return client.bufferedAmount
    },
    next: async () => inbox.shift() ?? new Promise((resolve) => readers.push(resolve)),
    pause: () => client.pause(),
    resume: () => client.resume(),
    close: (code, reason) => client.close(code, reason),
    vanish: () => client.terminate(),
    closed,
  }
}
