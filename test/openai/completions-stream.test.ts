import { connect, type Socket } from 'node:net'
import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { ask, joined, stream, user } from './support.ts'

const PATH = '/v1/chat/completions'

function send(socket: Socket, body: object): void {
  const json = JSON.stringify(body)
  socket.write(
    `POST ${PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(json)}\r\n\r\n${json}`,
  )
}

/** Reads until what came so far fits, and gives it with the last piece. */
async function readUntil(socket: Socket, fits: (text: string) => boolean): Promise<{ all: string; last: string }> {
  let all = ''
  for (;;) {
    const last = await new Promise<string>((resolve, reject) => {
      socket.once('data', (bytes: Buffer) => resolve(bytes.toString()))
      socket.once('close', () => reject(new Error('closed')))
    })
    all += last
    if (fits(all)) return { all, last }
  }
}

verifies(
  ['openai-completions.done', 'openai-completions.reuse'],
  '[DONE] and the end are one write, and the connection goes on',
  async () => {
    const { port } = await startServer(demo())
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    for (let n = 1; n <= 3; n++) {
      send(socket, { messages: [user(`/count ${n} 20`)], stream: true })
      const { all, last } = await readUntil(socket, (so) => so.includes('[DONE]'))
      expect(last.endsWith('data: [DONE]\n\n\r\n0\r\n\r\n')).toBe(true)
      expect(all).toMatch(/^HTTP\/1.1 200 /)
    }
    socket.destroy()
  },
)

verifies('openai-completions.heartbeat', 'silence is filled with comments, and then the answer comes', async () => {
  let speak = (): void => undefined
  const told = new Promise<void>((resolve) => (speak = resolve))
  const thinker = defineAgent('thinker', async function* () {
    await told
    yield text('At last')
  })
  const { port } = await startServer(thinker, { limits: { heartbeatMs: 20 } })
  const socket = connect({ port, host: '127.0.0.1' })
  send(socket, { messages: [user('x')], stream: true })
  await readUntil(socket, (so) => (so.match(/\r\n: keep-alive\n\n/g)?.length ?? 0) >= 3)
  speak()
  const { all } = await readUntil(socket, (so) => so.includes('[DONE]'))
  expect(all).toContain('"delta":{"content":"At last"}')
  socket.destroy()
})

verifies('openai-completions.gone', '50 at once, half of them cut: each answer is its own, and each cut one has stopped', async () => {
  const open = new Set<string>()
  let cutOff = 0
  const agent = defineAgent('teller', async function* ({ messages, signal }) {
    const secret = messages.at(-1)?.content ?? ''
    open.add(secret)
    try {
      yield text(messages.map(({ content }) => content).join(' '))
      // Those that will be cut wait for it.
      if (secret.endsWith('cut')) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      yield text(' end')
    } finally {
      if (signal.aborted) cutOff++
      open.delete(secret)
    }
  })
  const { url } = await startServer(agent)
  const one = async (n: number): Promise<void> => {
    const cut = n % 2 === 1
    const history = [user(`word-${n}`), { role: 'assistant', content: `noted-${n}` }, user(cut ? `ask-${n}-cut` : `ask-${n}`)]
    const expected = history.map(({ content }) => content).join(' ')
    if (!cut) return expect(joined((await stream(url + PATH, { messages: history })).chunks, 'content')).toBe(`${expected} end`)
    const controller = new AbortController()
    const body = JSON.stringify({ messages: history, stream: true })
    const response = await fetch(url + PATH, { method: 'POST', body, signal: controller.signal })
    let heard = ''
    for await (const bytes of response.body ?? []) {
      heard += Buffer.from(bytes).toString()
      if (heard.includes(expected)) break
    }
    controller.abort()
  }
  await Promise.all(Array.from({ length: 50 }, (_, n) => one(n)))
  while (open.size > 0) await new Promise((resolve) => setTimeout(resolve, 5))
  expect(cutOff).toBe(25)
  expect((await ask(url + PATH, { messages: [user('again')] })).body.choices[0].message.content).toBe('again end')
})
