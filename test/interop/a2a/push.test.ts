import { randomUUID } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { serve, type RunningServer } from '../../../src/serve/index.ts'
import { Gated } from './agents.ts'
import { refusal, say, taskOf } from './client.ts'
import { generations } from './generations.ts'

interface Call {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: unknown
}

/** Whoever is called back. */
class Webhook {
  readonly #server: Server
  readonly #calls: Call[] = []
  #wake: () => void = () => undefined

  constructor() {
    this.#server = createServer((request, response) => {
      let text = ''
      request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      request.on('end', () => {
        this.#calls.push({ path: request.url ?? '', headers: request.headers, body: JSON.parse(text) })
        response.writeHead(204).end()
        this.#wake()
      })
    })
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
  }

  url(path: string): string {
    return `http://localhost:${(this.#server.address() as AddressInfo).port}${path}`
  }

  /** Waits for the call that fits. */
  async called(path: string, pattern: RegExp): Promise<Call> {
    for (;;) {
      const call = this.#calls.find((each) => each.path === path && pattern.test(JSON.stringify(each.body)))
      if (call) return call
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

let server: RunningServer
const gated = new Gated()
const webhook = new Webhook()
beforeAll(async () => {
  await webhook.start()
  server = await serve(gated.agent, { port: 0, data: 'memory', log: () => undefined, outbound: { allow: ['localhost'] } })
})
afterAll(async () => {
  webhook.close()
  await server.close({ graceMs: 0 })
})

describe.each(generations)('@a2a-js/sdk $name', ({ connect, version }) => {
  test('sets, reads and removes where it is called back', async () => {
    const client = await connect(server.url)
    const { id } = taskOf(await client.send(say(randomUUID()), { wait: false }))
    const push = { id: 'mine', url: webhook.url('/unused'), token: 'secret' }
    expect(await client.setPush(id, push)).toMatchObject(push)
    expect(await client.getPush(id, 'mine')).toMatchObject(push)
    if (client.listPush) expect(await client.listPush(id)).toMatchObject([push])
    if (client.deletePush) {
      await client.deletePush(id, 'mine')
      expect(await client.listPush?.(id)).toEqual([])
      expect(await refusal(client, client.getPush(id, 'mine'))).not.toMatch(/^answered/)
    }
    await client.cancel(id)
  })

  test('is called back when the task is over', async () => {
    const client = await connect(server.url)
    const name = randomUUID()
    const path = `/${name}`
    const { id } = taskOf(await client.send(say(name), { wait: false, push: { url: webhook.url(path), token: 'secret' } }))
    gated.open(name)
    const { headers, body } = await webhook.called(path, /"(TASK_STATE_COMPLETED|completed)"/)
    expect(headers['x-a2a-notification-token']).toBe('secret')
    if (version === '1.0') {
      expect(headers['content-type']).toMatch(/^application\/a2a\+json/)
      expect(body).toMatchObject(
        'task' in (body as object) ? { task: { id } } : { statusUpdate: { taskId: id, status: { state: 'TASK_STATE_COMPLETED' } } },
      )
    } else {
      expect(headers['content-type']).toMatch(/^application\/json/)
      expect(body).toMatchObject({ kind: 'task', id, status: { state: 'completed' } })
    }
  })

  test.each(['http://127.0.0.1:1/', 'http://169.254.169.254/latest/', 'http://[::1]:1/', 'file:///etc/passwd', 'nonsense'])(
    'cannot have it call %s',
    async (url) => {
      const client = await connect(server.url)
      const { id } = taskOf(await client.send(say(randomUUID()), { wait: false }))
      expect(await refusal(client, client.setPush(id, { url }))).not.toMatch(/^answered/)
      await client.cancel(id)
    },
  )
})
