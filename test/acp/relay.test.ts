import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import { expect, onTestFinished } from 'vitest'
import { WebSocketServer, type WebSocket } from 'ws'
import { relay } from '../../src/cli/acp-relay.ts'
import { verifies } from '../support/verifies.ts'

const log = (): void => undefined
const output = { write: () => true, drained: async () => undefined }

for (const how of ['end', 'destroy'] as const)
  verifies('acp-1.stdio', `a bridge to somebody who does not read could not be ended: ${how}`, async () => {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    await once(server, 'listening')
    onTestFinished(() => {
      for (const client of server.clients) client.terminate()
      server.close()
    })
    const input = new PassThrough()
    const connected = once(server, 'connection') as Promise<[WebSocket]>
    const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
    const over = relay({ url, token: undefined, input, output, log })
    const [far] = await connected
    input.write('{}\n')
    await once(far, 'message')
    far.pause()
    const line = `${JSON.stringify({ jsonrpc: '2.0', method: 'x', params: { a: 'x'.repeat(1_000_000) } })}\n`
    for (let count = 0; count < 20; count++) input.write(line)
    input[how]()
    expect(await over).toBe(0)
  })

verifies('acp-1.stdio', 'a bridge to somebody who accepts connections and says nothing did not give up', async () => {
  const hole = createServer()
  await once(hole.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void hole.close())
  const url = `ws://127.0.0.1:${(hole.address() as AddressInfo).port}`
  const over = relay({ url, token: undefined, input: new PassThrough(), output, log, connectMs: 50 })
  await expect(over).rejects.toThrow(/There is no agent at ws:.*timed out/)
})
