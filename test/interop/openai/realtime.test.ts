import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { OpenAIRealtimeWebSocket, RealtimeAgent, RealtimeSession, tool } from '@openai/agents-realtime'
import { OpenAI as OpenAI5 } from 'openai5'
import { OpenAIRealtimeWS as Beta5 } from 'openai5/beta/realtime/ws'
import { OpenAI as OpenAI6 } from 'openai6'
import { OpenAIRealtimeWS as Beta6 } from 'openai6/beta/realtime/ws'
import { OpenAIRealtimeWS as Ga6 } from 'openai6/realtime/ws'
import { OpenAI as OpenAI7 } from 'openai7'
import { OpenAIRealtimeWS as Beta7 } from 'openai7/beta/realtime/ws'
import { OpenAIRealtimeWS as Ga7 } from 'openai7/realtime/ws'
import { describe, expect, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import { demo } from '../../../src/agents/demo/index.ts'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import type { AgentPort } from '../../../src/core/ports/agent.ts'
import { endless } from '../../support/agents.ts'
import { startServer } from '../../support/server.ts'

const MS = 24
const tone = (ms: number): Buffer => {
  const samples = Int16Array.from({ length: ms * MS }, (_, at) => Math.round(8000 * Math.sin(at / 9)))
  return Buffer.from(samples.buffer)
}
const start = (agent: AgentPort) => startServer(agent)

/** An event as these clients hand it on. */
type Heard = { type: string; [field: string]: any } // eslint-disable-line

/** What the classes of all versions have in common. */
interface Client {
  readonly socket: { readonly readyState: number; once(event: 'open', listener: () => void): unknown }
  on(event: 'event' | 'error', listener: (event: Heard) => void): unknown
  send(event: object): void
  close(): void
}
type Make = new (props: object, client: object) => Client

const GA = { text: 'response.output_text', audio: 'response.output_audio', session: gaSession }
const BETA = { text: 'response.text', audio: 'response.audio', session: betaSession }

function gaSession({ modalities, ...rest }: { modalities: string[]; tools?: object[] }): object {
  return { type: 'realtime', output_modalities: modalities, audio: { input: { turn_detection: null } }, ...rest }
}
function betaSession(settings: { modalities: string[]; tools?: object[] }): object {
  return { turn_detection: null, ...settings }
}

const classes = [
  { name: 'openai 7.53 GA', make: Ga7, openai: OpenAI7, words: GA },
  { name: 'openai 6.49 GA', make: Ga6, openai: OpenAI6, words: GA },
  { name: 'openai 7.53 beta', make: Beta7, openai: OpenAI7, words: BETA },
  { name: 'openai 6.49 beta', make: Beta6, openai: OpenAI6, words: BETA },
  { name: 'openai 5.23 beta', make: Beta5, openai: OpenAI5, words: BETA },
]

describe.each(classes)('$name', ({ make, openai, words }) => {
  async function connect(agent: AgentPort) {
    const { port } = await start(agent)
    const client = new openai({ apiKey: 'any', baseURL: `https://127.0.0.1:${port}/v1` })
    // It insists on wss; the bytes go over a plain connection.
    const options = { createConnection: () => connectTcp(port, '127.0.0.1') }
    const rt = new (make as unknown as Make)({ model: 'demo', options }, client)
    onTestFinished(() => rt.close())
    const heard: Heard[] = []
    const errors: Heard[] = []
    let wake: () => void = () => undefined
    rt.on('event', (event) => {
      heard.push(event)
      wake()
    })
    rt.on('error', (error) => errors.push(error))
    let cursor = 0
    const next = async (type: string): Promise<Heard> => {
      for (;;) {
        while (cursor < heard.length) {
          const event = heard[cursor++] as Heard
          if (event.type === type) return event
        }
        await new Promise<void>((resolve) => (wake = resolve))
      }
    }
    await next('session.created')
    return { rt, heard, errors, next }
  }
  const says = (text: string) => ({
    type: 'conversation.item.create',
    item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
  })

  test('text', async () => {
    const { rt, heard, errors, next } = await connect(demo())
    rt.send({ type: 'session.update', session: words.session({ modalities: ['text'] }) })
    await next('session.updated')
    rt.send(says('hello'))
    rt.send({ type: 'response.create' })
    const { response } = await next('response.done')
    expect(response.status).toBe('completed')
    const deltas = heard.filter(({ type }) => type === `${words.text}.delta`).map(({ delta }) => delta as string)
    expect(deltas.join('')).toBe('You said: hello')
    expect(errors).toEqual([])
  })

  test('audio in and out', async () => {
    const { rt, heard, errors, next } = await connect(demo())
    rt.send({ type: 'session.update', session: words.session({ modalities: ['audio', 'text'] }) })
    const said = tone(300)
    rt.send({ type: 'input_audio_buffer.append', audio: said.toString('base64') })
    rt.send({ type: 'input_audio_buffer.commit' })
    rt.send({ type: 'response.create' })
    await next('response.done')
    const audio = heard.filter(({ type }) => type === `${words.audio}.delta`).map(({ delta }) => Buffer.from(delta as string, 'base64'))
    expect(Buffer.concat(audio).equals(said)).toBe(true)
    expect(errors).toEqual([])
  })

  test('a function call', async () => {
    const { rt, errors, next } = await connect(demo())
    const tools = [{ type: 'function', name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } }]
    rt.send({ type: 'session.update', session: words.session({ modalities: ['text'], tools }) })
    rt.send(says('/tool weather {"city":"Oslo"}'))
    rt.send({ type: 'response.create' })
    const call = await next('response.function_call_arguments.done')
    expect(JSON.parse(call['arguments'] as string)).toEqual({ city: 'Oslo' })
    await next('response.done')
    rt.send({ type: 'conversation.item.create', item: { type: 'function_call_output', call_id: call['call_id'], output: '"rain"' } })
    rt.send({ type: 'response.create' })
    expect((await next(`${words.text}.done`))['text']).toBe('weather answered: "rain"')
    expect(errors).toEqual([])
  })

  test('a cancel, and an error', async () => {
    const { agent, stopped } = endless()
    const { rt, errors, next } = await connect(agent)
    rt.send({ type: 'response.create' })
    await next(`${words.text}.delta`)
    rt.send({ type: 'response.cancel' })
    expect((await next('response.done'))['response'].status).toBe('cancelled')
    await stopped
    rt.send({ type: 'response.cancel', event_id: 'too late' })
    expect((await next('error'))['error']).toMatchObject({ code: 'response_cancel_not_active', event_id: 'too late' })
    expect(errors).toHaveLength(1)
  })
})

describe('@openai/agents-realtime 0.20', () => {
  async function connect(agent: AgentPort, { tools = [], config = {} }: { tools?: ReturnType<typeof tool>[]; config?: object } = {}) {
    const { url } = await start(agent)
    const transport = new OpenAIRealtimeWebSocket({ url: `${url.replace('http', 'ws')}/v1/realtime?model=demo`, apiKey: 'any' })
    const session = new RealtimeSession(new RealtimeAgent({ name: 'demo', instructions: 'Be brief.', tools }), { transport, config })
    const errors: unknown[] = []
    session.on('error', (error) => errors.push(error))
    onTestFinished(() => session.close())
    await session.connect({ apiKey: 'any' })
    return { session, transport, errors }
  }
  const lastText = (session: RealtimeSession): unknown => {
    const item = session.history.at(-1)
    if (item?.type !== 'message') return item
    const [part] = item.content
    return part?.type === 'output_text' ? part.text : part?.type === 'output_audio' ? part.transcript : part
  }

  test('text', async () => {
    const { session, transport, errors } = await connect(demo(), { config: { outputModalities: ['text'] } })
    const done = once(transport as never, 'turn_done')
    session.sendMessage('hello')
    await done
    expect(lastText(session)).toBe('You said: hello')
    expect(session.history.map((item) => (item.type === 'message' && 'status' in item ? item.status : item.type))).toEqual([
      'completed',
      'completed',
    ])
    expect(errors).toEqual([])
  })

  test('audio in and out, by the pauses of who speaks', async () => {
    const { session, transport, errors } = await connect(demo())
    const heard: Buffer[] = []
    session.on('audio', ({ data }) => heard.push(Buffer.from(data)))
    const done = once(transport as never, 'turn_done')
    const said = Buffer.concat([Buffer.alloc(200 * MS * 2), tone(400), Buffer.alloc(600 * MS * 2)])
    for (let at = 0; at < said.length; at += 20 * MS * 2) {
      const piece = said.subarray(at, at + 20 * MS * 2)
      session.sendAudio(Uint8Array.from(piece).buffer)
    }
    await done
    // From the beginning, as less than the padding came before the speech, to half a second after it.
    expect(Buffer.concat(heard).equals(said.subarray(0, 1100 * MS * 2))).toBe(true)
    expect(lastText(session)).toMatch(/^You said 1\.1 s/)
    expect(errors).toEqual([])
  })

  test('a function call', async () => {
    const asked: string[] = []
    const weather = tool({
      name: 'weather',
      description: 'How it is outside',
      parameters: z.object({ city: z.string() }),
      execute: async ({ city }) => {
        asked.push(city)
        return `rain in ${city}`
      },
    })
    const { session, transport, errors } = await connect(demo(), { tools: [weather], config: { outputModalities: ['text'] } })
    const first = once(transport as never, 'turn_done')
    session.sendMessage('/tool weather {"city":"Oslo"}')
    await first
    await once(transport as never, 'turn_done')
    expect(asked).toEqual(['Oslo'])
    expect(lastText(session)).toBe('weather answered: rain in Oslo')
    expect(errors).toEqual([])
  })

  test('a cancel', async () => {
    const { agent, stopped } = endless()
    const { session, transport } = await connect(agent, { config: { outputModalities: ['text'] } })
    const started = once(transport as never, 'output_text_delta')
    session.sendMessage('go')
    await started
    const done = once(transport as never, 'response.done')
    transport.sendEvent({ type: 'response.cancel' })
    const [event] = (await done) as [Heard]
    expect(event['response'].status).toBe('cancelled')
    await stopped
  })

  test('who speaks interrupts what is spoken, and what was not heard is cut off', async () => {
    const talker = defineAgent('talker', async function* ({ signal }) {
      for (let tenth = 0; tenth < 600; tenth++) yield { type: 'audio.delta', audio: tone(100).toString('base64') }
      yield { type: 'transcript.delta', transcript: 'A minute of it.' }
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    })
    const { session, transport, errors } = await connect(talker)
    const spoken = once(transport as never, 'audio_transcript_delta')
    session.sendMessage('go')
    await spoken
    const [interrupted, truncated] = [
      once(transport as never, 'audio_interrupted'),
      once(transport as never, 'conversation.item.truncated'),
    ]
    session.sendAudio(Uint8Array.from(tone(100)).buffer)
    await interrupted
    const [{ audio_end_ms }] = (await truncated) as [{ audio_end_ms: number }]
    expect(audio_end_ms).toBeLessThan(60_000)
    const [{ item }] = (await once(transport as never, 'conversation.item.retrieved')) as [Heard]
    expect(item.content).toMatchObject([{ type: 'output_audio', transcript: null }])
    expect(errors).toEqual([])
  })
})
