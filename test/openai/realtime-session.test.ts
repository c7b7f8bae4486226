import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { mirror, type Mirrored } from '../support/agents.ts'
import { startServer } from '../support/server.ts'
import { refusedUpgrade } from '../support/test-server.ts'
import { verifies } from '../support/verifies.ts'
import { connect, DIALECTS, says, type Heard, type RealtimeWire } from './realtime-wire.ts'

const start = (agents: Parameters<typeof startServer>[0] = demo(), options: Parameters<typeof startServer>[1] = {}) =>
  startServer(agents, options)

const BETA = DIALECTS.beta.options.headers
const DETECTION = {
  type: 'server_vad',
  threshold: 0.5,
  prefix_padding_ms: 300,
  silence_duration_ms: 500,
  idle_timeout_ms: null,
  create_response: true,
  interrupt_response: true,
}

describe('the greeting', () => {
  verifies(
    ['openai-realtime.session-created', 'openai-realtime.ga-path', 'openai-realtime.capabilities'],
    'at /v1/realtime is GA',
    async () => {
      const { url } = await start()
      const { heard } = await connect(url)
      expect(heard[0]).toEqual({
        type: 'session.created',
        event_id: expect.any(String),
        session: {
          type: 'realtime',
          object: 'realtime.session',
          id: expect.stringMatching(/^sess_/),
          model: 'm',
          output_modalities: ['audio'],
          instructions: '',
          tools: [],
          tool_choice: 'auto',
          max_output_tokens: 'inf',
          tracing: null,
          truncation: 'auto',
          prompt: null,
          include: null,
          audio: {
            input: { format: { type: 'audio/pcm', rate: 24000 }, transcription: null, noise_reduction: null, turn_detection: DETECTION },
            output: { format: { type: 'audio/pcm', rate: 24000 }, voice: 'alloy', speed: 1 },
          },
          capabilities: demo().capabilities,
        },
      })
    },
  )

  verifies(['openai-realtime.beta-header', 'openai-realtime.session-created'], 'is that of the beta for who asks by header', async () => {
    const { url } = await start()
    for (const path of ['/v1/realtime', '/realtime']) {
      const { heard } = await connect(url, { path, headers: BETA })
      expect(heard[0]?.['session']).toEqual({
        object: 'realtime.session',
        id: expect.stringMatching(/^sess_/),
        model: 'demo',
        modalities: ['audio', 'text'],
        instructions: '',
        voice: 'alloy',
        speed: 1,
        input_audio_format: 'pcm16',
        output_audio_format: 'pcm16',
        input_audio_transcription: null,
        input_audio_noise_reduction: null,
        turn_detection: DETECTION,
        tools: [],
        tool_choice: 'auto',
        temperature: 0.8,
        max_response_output_tokens: 'inf',
        tracing: null,
        capabilities: demo().capabilities,
      })
    }
  })

  verifies('openai-realtime.beta-subprotocol', 'is that of the beta for who asks by subprotocol', async () => {
    const { url } = await start()
    const wire = await connect(url, { protocols: ['realtime', 'openai-insecure-api-key.sk-any', 'openai-beta.realtime-v1'] })
    expect(wire.socket.protocol).toBe('realtime')
    expect(wire.heard[0]?.['session']).toHaveProperty('modalities')
    const types = (await wire.respond(says('hi'))).map(({ type }) => type)
    expect(types).toContain('response.text.delta')
  })
})

describe('at /realtime the first event decides', () => {
  const first: readonly [string, string, object][] = [
    ['beta', 'a session.update with names of the beta', { type: 'session.update', session: { modalities: ['text'] } }],
    ['beta', 'a message', says('hi')],
    ['ga', 'session.type', { type: 'session.update', session: { type: 'realtime' } }],
    ['ga', 'session.output_modalities', { type: 'session.update', session: { output_modalities: ['text'] } }],
    ['ga', 'session.audio', { type: 'session.update', session: { audio: { output: { voice: 'cedar' } } } }],
    [
      'ga',
      'a part that only GA has',
      { type: 'conversation.item.create', item: { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'hi' }] } },
    ],
  ]
  for (const [dialect, what, event] of first) {
    verifies('openai-realtime.seed-path', `for ${dialect}: ${what}`, async () => {
      const { url } = await start()
      const wire = await connect(url, { path: '/realtime' })
      expect(wire.heard[0]?.['session']).toHaveProperty('modalities')
      // What comes later changes nothing.
      const events = await wire.respond(event, { type: 'session.update', session: {} }, says('hello'))
      const types = events.map(({ type }) => type)
      expect(types.includes('response.output_text.delta')).toBe(dialect === 'ga')
      expect(types.includes('response.text.delta')).toBe(dialect === 'beta')
      expect(wire.heard.filter(({ type }) => type === 'error')).toEqual([])
    })
  }

  verifies('openai-realtime.seed-path', 'for GA by a response.create', async () => {
    const { url } = await start()
    const wire = await connect(url, { path: '/realtime' })
    wire.send({ type: 'response.create', response: { output_modalities: ['text'] } })
    expect((await wire.next('response.done'))['response']).toMatchObject({ output_modalities: ['text'] })
  })
})

describe('who answers', () => {
  const named = (name: string) =>
    defineAgent(name, async function* () {
      yield text(`I am ${name}`)
    })
  const answer = async (wire: RealtimeWire): Promise<string> => {
    await wire.respond(says('who?'))
    return wire.heard.at(-1)?.['response'].output[0].content[0].text as string
  }

  verifies('openai-realtime.model', 'is whom `model` names, else the agent of the root', async () => {
    const { url } = await start([named('alice'), named('bob')], { defaultAgent: 'alice' })
    expect(await answer(await connect(url, { path: '/v1/realtime?model=bob' }))).toBe('I am bob')
    expect(await answer(await connect(url, { path: '/v1/realtime?model=gpt-realtime' }))).toBe('I am alice')
    expect(await answer(await connect(url, { path: '/v1/realtime' }))).toBe('I am alice')
  })

  verifies('openai-realtime.agent-path', 'is whom the path names', async () => {
    const { url } = await start([named('alice'), named('bob')], { defaultAgent: 'alice' })
    expect(await answer(await connect(url, { path: '/agents/bob/realtime?model=alice' }))).toBe('I am bob')
    expect(await answer(await connect(url, { path: '/agents/bob/v1/realtime' }))).toBe('I am bob')
    const refused = await refusedUpgrade(new WebSocket(`${url.replace('http', 'ws')}/agents/nobody/realtime`))
    expect(refused).toMatchObject({ status: 404, body: { error: { type: 'invalid_request_error' } } })
  })
})

describe('keys', () => {
  const tokens = { alice: 'wonderland-0123456789abcdef' }

  verifies('openai-realtime.auth-header', 'come by header; without one the upgrade is refused as OpenAI does', async () => {
    const { url } = await start(demo(), { tokens })
    await connect(url, { headers: { authorization: 'Bearer wonderland-0123456789abcdef' } })
    for (const headers of [{}, { authorization: 'Bearer wrong' }]) {
      const refused = await refusedUpgrade(new WebSocket(`${url.replace('http', 'ws')}/v1/realtime`, { headers }))
      expect(refused).toMatchObject({
        status: 401,
        body: { error: { type: 'invalid_request_error', code: 'invalid_api_key', param: null } },
      })
    }
  })

  verifies('openai-realtime.auth-subprotocol', 'come by subprotocol from browsers, and are not sent back', async () => {
    const { url } = await start(demo(), { tokens })
    const wire = await connect(url, { protocols: ['realtime', 'openai-insecure-api-key.wonderland-0123456789abcdef'] })
    expect(wire.socket.protocol).toBe('realtime')
    const refused = await refusedUpgrade(
      new WebSocket(`${url.replace('http', 'ws')}/v1/realtime`, ['realtime', 'openai-insecure-api-key.wrong']),
    )
    expect(refused.status).toBe(401)
  })
})

describe('session.update', () => {
  const tool = { type: 'function', name: 'weather', description: 'How it is outside', parameters: { type: 'object', properties: {} } }

  verifies('openai-realtime.session-update', 'of GA changes what is given and shows the whole', async () => {
    const { url } = await start()
    const wire = await connect(url)
    const before = wire.heard[0]?.['session']
    const first = await wire.ask(
      {
        type: 'session.update',
        session: {
          type: 'realtime',
          instructions: 'Be brief.',
          output_modalities: ['text'],
          tools: [tool],
          tool_choice: { type: 'function', name: 'weather' },
          max_output_tokens: 100,
          tracing: 'auto',
          unknown_field: 1,
          audio: {
            input: {
              format: { type: 'audio/pcmu' },
              transcription: { model: 'whisper-1' },
              noise_reduction: { type: 'near_field' },
              turn_detection: null,
            },
            output: { format: { type: 'audio/pcma' }, voice: 'cedar', speed: 1.2 },
          },
        },
      },
      'session.updated',
    )
    const changed = {
      ...before,
      instructions: 'Be brief.',
      output_modalities: ['text'],
      tools: [tool],
      tool_choice: { type: 'function', name: 'weather' },
      max_output_tokens: 100,
      tracing: 'auto',
      audio: {
        input: {
          format: { type: 'audio/pcmu' },
          transcription: { model: 'whisper-1' },
          noise_reduction: { type: 'near_field' },
          turn_detection: null,
        },
        output: { format: { type: 'audio/pcma' }, voice: 'cedar', speed: 1.2 },
      },
    }
    expect(first['session']).toEqual(changed)
    const second = await wire.ask(
      {
        type: 'session.update',
        session: { type: 'realtime', audio: { input: { turn_detection: { type: 'server_vad', threshold: 0.7 } } } },
      },
      'session.updated',
    )
    changed.audio.input.turn_detection = { ...DETECTION, threshold: 0.7 } as never
    expect(second['session']).toEqual(changed)
  })

  verifies('openai-realtime.session-update', 'of the beta changes what is given and shows the whole', async () => {
    const { url } = await start()
    const wire = await connect(url, { headers: BETA })
    const before = wire.heard[0]?.['session']
    const changes = {
      modalities: ['text'],
      instructions: 'Be brief.',
      voice: 'nova',
      input_audio_format: 'g711_ulaw',
      output_audio_format: 'g711_alaw',
      input_audio_transcription: { model: 'whisper-1' },
      turn_detection: null,
      tools: [tool],
      tool_choice: 'required',
      temperature: 0.6,
      max_response_output_tokens: 200,
    }
    const { session } = await wire.ask({ type: 'session.update', session: changes }, 'session.updated')
    expect(session).toEqual({ ...before, ...changes })
    const again = await wire.ask({ type: 'session.update', session: { voice: 'alloy' } }, 'session.updated')
    expect(again['session']).toEqual({ ...before, ...changes, voice: 'alloy' })
  })

  verifies('openai-realtime.vad-semantic', 'takes semantic_vad and shows it', async () => {
    const { url } = await start()
    const wire = await connect(url)
    const turn_detection = { type: 'semantic_vad', eagerness: 'high', create_response: true, interrupt_response: false }
    const { session } = await wire.ask({ type: 'session.update', session: { audio: { input: { turn_detection } } } }, 'session.updated')
    expect(session.audio.input.turn_detection).toEqual(turn_detection)
  })

  verifies('openai-realtime.session-config', 'reaches the agent', async () => {
    const { url } = await start(mirror)
    const wire = await connect(url, { path: '/v1/realtime?model=gpt-realtime' })
    const { config } = mirrored(
      await wire.respond(
        {
          type: 'session.update',
          session: {
            type: 'realtime',
            instructions: 'Be brief.',
            output_modalities: ['text'],
            tools: [tool],
            tool_choice: 'required',
            max_output_tokens: 50,
            audio: { output: { voice: 'cedar' }, input: { turn_detection: null, format: { type: 'audio/pcmu' } } },
          },
        },
        says('hi'),
      ),
    )
    expect(config).toEqual({
      modalities: ['text'],
      instructions: 'Be brief.',
      tools: [
        {
          type: 'function',
          function: { name: 'weather', description: 'How it is outside', parameters: { type: 'object', properties: {} } },
        },
      ],
      voice: { voice_id: 'cedar', speed: 1 },
      input_audio_format: 'pcm16',
      output_audio_format: 'pcm16',
      turn_detection: { type: 'none' },
      extensions: { openai: { model: 'gpt-realtime', tool_choice: 'required', max_output_tokens: 50 } },
    })
    // What was set can be taken back.
    const later = mirrored(
      await wire.respond({ type: 'session.update', session: { instructions: '', tools: [], output_modalities: ['audio'] } }, says('hi')),
    )
    expect(later.config).toMatchObject({ modalities: ['audio', 'text'], instructions: '', tools: [] })
  })
})

test('a session that the server ends takes its socket with it', async () => {
  const server = await start()
  const wire = await connect(server.url)
  const session = await server.gateway.attach(wire.heard[0]?.['session'].id as string, {
    tenant: 'default',
    id: 'anonymous',
    scopes: ['*'],
  })
  await session?.end()
  expect((await wire.closed).code).toBe(1000)
})

test('a session ends with its connection, and one that cannot open is told why', async () => {
  const server = await start(demo(), { limits: { sessionsPerPrincipal: 1 } })
  const wire = await connect(server.url)
  const second = new WebSocket(`${server.url.replace('http', 'ws')}/v1/realtime`)
  const told = once(second, 'message').then(([data]) => JSON.parse(String(data)) as Heard)
  const [code] = (await once(second, 'close')) as [number]
  expect(code).toBe(1008)
  expect(await told).toMatchObject({ type: 'error', error: { type: 'rate_limit_error', code: 'rate_limit_exceeded', event_id: null } })
  wire.socket.close()
  const id = wire.heard[0]?.['session'].id as string
  await expect.poll(() => server.gateway.attach(id, { tenant: 'default', id: 'anonymous', scopes: ['*'] })).toBeUndefined()
  await connect(server.url)
})

function mirrored(events: readonly Heard[]): Mirrored {
  return JSON.parse(events.at(-1)?.['response'].output[0].content[0].text as string) as Mirrored
}
