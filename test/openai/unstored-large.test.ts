import { connect as openSocket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import type { Draft } from '../../src/protocol/events.ts'
import { startServer } from '../support/server.ts'
import { connect } from './realtime-wire.ts'
import { ask, joined, stream, user } from './support.ts'

/** More than the ring of a session's log holds. */
const MIB = 1024 * 1024

/** An answer that repeats nothing, so that a missing piece cannot hide. */
function numbered(bytes: number): string {
  let all = ''
  for (let n = 0; all.length < bytes; n++) all += `${n} `
  return all.slice(0, bytes)
}

function pieces(whole: string, size: number): string[] {
  return Array.from({ length: Math.ceil(whole.length / size) }, (_, index) => whole.slice(index * size, (index + 1) * size))
}

function saying(drafts: readonly Draft[]): AgentPort {
  return defineAgent('m', async function* () {
    yield* drafts
  })
}

const request = { model: 'm', messages: [user('go')] }

/** Reads the body of a POST in small sips, slower than an agent that never waits can write. */
async function sip(url: string, body: object): Promise<string> {
  const { hostname, port, pathname } = new URL(url)
  const socket = openSocket(Number(port), hostname)
  const payload = JSON.stringify(body)
  socket.write(
    `POST ${pathname} HTTP/1.0\r\nhost: ${hostname}\r\ncontent-type: application/json\r\ncontent-length: ${payload.length}\r\n\r\n${payload}`,
  )
  const chunks: Buffer[] = []
  for await (const chunk of socket) {
    chunks.push(chunk as Buffer)
    if (chunks.length % 16 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
  }
  return Buffer.concat(chunks).toString()
}

describe('a session without a store loses nothing that its reader has not read', () => {
  test('300,000 deltas, streamed to a slow reader', async () => {
    const { url } = await startServer(demo())
    const raw = await sip(`${url}/v1/chat/completions`, { model: 'demo', stream: true, messages: [user('/count 300000')] })
    const said = [...raw.matchAll(/"content":"([^"]*)"/g)].map(([, piece]) => piece).join('')
    expect(said.split(' ').length).toBe(300_000)
    expect(said.endsWith(' 300000')).toBe(true)
    expect(raw).toContain('"finish_reason":"stop"')
  })

  const shapes = [
    { name: '900 deltas of 1,000 characters', whole: numbered(900_000), size: 1000 },
    { name: 'one delta above 1 MiB', whole: numbered(MIB + 1), size: MIB + 1 },
    { name: 'deltas of 300,000 characters', whole: numbered(3 * MIB), size: 300_000 },
  ]
  for (const { name, whole, size } of shapes) {
    const agent = saying(pieces(whole, size).map((piece) => text(piece)))
    test(`completions, streamed: ${name}`, async () => {
      const { url } = await startServer(agent)
      const { chunks, data } = await stream(`${url}/v1/chat/completions`, request)
      expect(joined(chunks, 'content') === whole).toBe(true)
      expect(data.at(-1)).toBe('[DONE]')
    })

    test(`completions, not streamed: ${name}`, async () => {
      const { url } = await startServer(agent)
      const { body } = await ask(`${url}/v1/chat/completions`, request)
      expect(body.choices[0].message.content === whole).toBe(true)
    })

    test(`Responses with store: false, streamed and not: ${name}`, async () => {
      const { url } = await startServer(agent)
      const asked = { model: 'm', input: 'go', store: false }
      const { body } = await ask(`${url}/v1/responses`, asked)
      expect(body.output[0].content[0].text === whole).toBe(true)
      const { chunks } = await stream(`${url}/v1/responses`, asked)
      const said = chunks.filter(({ type }) => type === 'response.output_text.delta').map(({ delta }) => delta)
      expect(said.join('') === whole).toBe(true)
      expect(chunks.at(-1)).toMatchObject({ type: 'response.completed' })
    })

    test(`Realtime: ${name}`, async () => {
      const { url } = await startServer(agent)
      const wire = await connect(url)
      wire.send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } })
      const heard = await wire.respond()
      const said = heard.filter(({ type }) => type === 'response.output_text.delta').map(({ delta }) => delta as string)
      expect(said.join('') === whole).toBe(true)
      expect(heard.at(-1)).toMatchObject({ type: 'response.done', response: { status: 'completed' } })
    })
  }

  test('a picture above 1 MiB, and the text after it', async () => {
    const image = numbered(MIB + 1)
    const { url } = await startServer(
      saying([{ type: 'response.delta', delta: { type: 'image', image, format: 'png' } }, text('after it')]),
    )
    const { chunks } = await stream(`${url}/v1/chat/completions`, request)
    expect(joined(chunks, 'content')).toBe('after it')
    expect(chunks.some(({ choices }) => choices[0]?.delta.content_items?.[0]?.image === image)).toBe(true)
  })

  test('25 seconds of speech over Realtime', async () => {
    const { url } = await startServer(demo())
    const wire = await connect(url, { path: '/v1/realtime?model=demo' })
    const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: '/audio 25' }] }
    const heard = await wire.respond({ type: 'conversation.item.create', item })
    const speech = heard
      .filter(({ type }) => type === 'response.output_audio.delta')
      .map(({ delta }) => Buffer.from(delta as string, 'base64'))
    expect(Buffer.concat(speech).length / 48_000).toBe(25)
  })
})
