import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { remoteCompletions } from '../../src/remotes/completions/index.ts'
import { ask, joined, stream } from '../openai/support.ts'
import { endless, mirror, scripted } from '../support/agents.ts'
import { startServer } from '../support/server.ts'
import { mirrored, say, textOf } from '../support/talk.ts'
import { overSse, overWebSocket, type Heard } from '../support/wire.ts'
import { begin } from './plain.ts'
import { verifies } from '../support/verifies.ts'

const DOUBLE = { type: 'function', function: { name: 'double', parameters: { type: 'object', properties: { n: { type: 'number' } } } } }

async function pair() {
  const there = await startServer(demo())
  const here = await startServer(remoteCompletions({ name: 'far', url: `${there.url}/v1`, model: 'demo' }))
  return { there, here }
}

const outputOf = (events: readonly Heard[]): any[] => events.at(-1)?.['response']?.output // eslint-disable-line
/** Without what is new in every answer. */
const bare = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, field: unknown) =>
      ['id', 'created', 'model', 'content_id', 'call_id', 'expires_at'].includes(key) ? 'new' : field,
    ),
  )

/** What Chat Completions can carry: not progress, state, or the stage of a thought. */
for (const command of ['hello there', '/count 5', '/tool add {"a":1,"b":2}', '/image', '/file', '/video', '/json', '/big 200000', '/help'])
  verifies('remote-completions.same', `${command} behind a remote says what it says directly, over events`, async () => {
    const { there, here } = await pair()
    const [direct, remote] = await Promise.all([overWebSocket(there.url), overWebSocket(here.url)])
    await Promise.all([direct.open(), remote.open()])
    const [said, repeated] = [await say(direct, command), await say(remote, command)]
    expect(textOf(repeated)).toBe(textOf(said))
    expect(bare(outputOf(repeated))).toEqual(bare(outputOf(said)))
    expect(repeated.at(-1)?.['response'].usage).toMatchObject(said.at(-1)?.['response'].usage ?? {})
  })

for (const command of ['hello there', '/count 5', '/think life', '/tool add {"a":1,"b":2}', '/image', '/approve it', '/json'])
  verifies('remote-completions.same', `${command} behind a remote is what it is directly, over completions`, async () => {
    const { there, here } = await pair()
    const asked = { messages: [{ role: 'user', content: command }] }
    const [direct, remote] = await Promise.all([there, here].map(({ url }) => ask(`${url}/v1/chat/completions`, asked)))
    expect(bare(remote?.body)).toEqual(bare(direct?.body))
    const [first, second] = await Promise.all([there, here].map(({ url }) => stream(`${url}/v1/chat/completions`, asked)))
    for (const field of ['content', 'reasoning_content'])
      expect(joined(second?.chunks ?? [], field)).toBe(joined(first?.chunks ?? [], field))
  })

verifies('remote-completions.errors', 'errors keep their code, and those before the first word their status', async () => {
  const { here } = await pair()
  const wire = await overWebSocket(here.url)
  await wire.open()
  expect((await say(wire, '/error invalid_request')).at(-1)).toMatchObject({
    type: 'response.error',
    error: { code: 'invalid_request', message: 'far answered 400: You asked me to fail with "invalid_request"' },
  })
  const asked = { messages: [{ role: 'user', content: '/error invalid_request' }] }
  expect(await ask(`${here.url}/v1/chat/completions`, asked)).toMatchObject({ status: 400 })
})

verifies('remote-completions.end', 'thoughts, speech, refusals, stop reasons and signatures come through', async () => {
  const response = { id: '', status: 'completed' as const, output: [], extensions: { uamp: { stop_reason: 'length' } } }
  const there = await startServer([
    scripted([
      { type: 'thinking', content: 'Hm', is_delta: true },
      { type: 'thinking', content: ' hm.', is_delta: true },
      { type: 'response.delta', delta: { type: 'text', text: 'No.', refusal: true } },
      { type: 'usage.delta', delta: { input_tokens: 30, output_tokens: 10, cached_tokens: 20, reasoning: 4 } },
      { type: 'response.done', response, signature: 'signed' },
    ]),
    demo(),
  ])
  const here = await startServer([
    remoteCompletions({ name: 'far', url: `${there.url}/v1`, model: 'scripted' }),
    remoteCompletions({ name: 'speaker', url: `${there.url}/v1`, model: 'demo' }),
  ])
  const wire = await overWebSocket(here.url)
  await wire.open({ agent: 'far' })
  const events = await say(wire, 'hi')
  expect(events.filter(({ type }) => type === 'thinking')).toMatchObject([{ content: 'Hm' }, { content: ' hm.' }])
  expect(events.at(-1)).toMatchObject({
    signature: 'signed',
    response: {
      output: [
        { type: 'thinking', thinking: 'Hm hm.' },
        { type: 'text', text: 'No.', refusal: true },
      ],
      usage: { input_tokens: 30, input_uncached: 10, cache_read: 20, output_tokens: 10, reasoning: 4 },
      extensions: { uamp: { stop_reason: 'length' } },
    },
  })
  const session = await wire.open({ agent: 'speaker', session: { modalities: ['text', 'audio'] } })
  const spoken = await say(wire, '/audio 0.2', { session })
  expect(spoken.map(({ type }) => type)).toEqual(
    expect.arrayContaining(['audio.delta', 'transcript.delta', 'audio.done', 'transcript.done']),
  )
  const [audio] = outputOf(spoken)
  expect(audio).toMatchObject({ type: 'audio', format: 'pcm16', transcript: 'A tone of 0.2 s.' })
  expect(atob(audio.audio)).toHaveLength(0.2 * 24_000 * 2)
})

verifies('remote-completions.conversation', 'the conversation goes along, with media in it', async () => {
  const there = await startServer(mirror)
  const here = await startServer(remoteCompletions({ name: 'far', url: `${there.url}/v1`, model: 'mirror' }))
  const wire = await overWebSocket(here.url)
  await wire.open({ session: { modalities: ['text'], instructions: 'Be kind', extensions: { openai: { temperature: 0.5, odd: 1 } } } })
  await wire.send({ type: 'input.image', image: 'aGk=', format: 'png' })
  await wire.send({ type: 'input.audio', audio: 'AAAA', format: 'pcm16', is_final: true })
  await wire.send({ type: 'input.file', file: 'aGk=', filename: 'a.pdf', mime_type: 'application/pdf' })
  await wire.send({ type: 'input.video', video: 'aGk=', description: 'a cat' })
  const { messages, config } = mirrored(await say(wire, 'look'))
  expect(messages).toMatchObject([
    { role: 'system', content: 'Be kind' },
    {
      role: 'user',
      content_items: [
        { type: 'image', image: 'aGk=', format: 'png' },
        { type: 'audio', format: 'wav' },
        { type: 'file', file: 'aGk=', filename: 'a.pdf', mime_type: 'application/pdf' },
        { type: 'text', text: expect.stringMatching(/^\[video "a cat"/) },
        { type: 'text', text: 'look' },
      ],
    },
  ])
  expect(config.extensions).toMatchObject({ openai: { temperature: 0.5, model: 'mirror' } })
  expect(config.extensions?.['openai']).not.toHaveProperty('odd')
})

for (const [binding, connect] of Object.entries({ WebSocket: overWebSocket, SSE: overSse }))
  verifies('remote-completions.tools', `a call of a client tool is asked here, and its result sent there: ${binding}`, async () => {
    const { here } = await pair()
    const wire = await connect(here.url)
    await wire.open({ session: { modalities: ['text'], tools: [DOUBLE] } })
    const answer = await begin(wire, '/tool double {"n":4}')
    const call = await wire.next('tool.call')
    expect(call).toMatchObject({ name: 'double', arguments: '{"n":4}' })
    await wire.send({ type: 'tool.result', call_id: call['call_id'], result: '{"n":8}' })
    const events = await answer.end()
    expect(textOf(events)).toBe('double answered: {"n":8}')
    expect(outputOf(events).map(({ type }) => type)).toEqual(['tool_call', 'tool_result', 'text'])
  })

verifies('remote-completions.one-way', 'over completions the call goes on to the client, and the next request has its result', async () => {
  const { here } = await pair()
  const url = `${here.url}/v1/chat/completions`
  const messages = [{ role: 'user', content: '/tool double {"n":4}' }]
  const first = await ask(url, { messages, tools: [DOUBLE] })
  const { message, finish_reason } = first.body.choices[0]
  expect(finish_reason).toBe('tool_calls')
  const result = { role: 'tool', tool_call_id: message.tool_calls[0].id, content: '8' }
  const second = await ask(url, { messages: [...messages, message, result], tools: [DOUBLE] })
  expect(second.body.choices[0].message.content).toBe('double answered: 8')
})

verifies('remote-completions.cancel', 'a cancel closes the connection, which stops the agent there', async () => {
  const { agent, stopped } = endless()
  const there = await startServer(agent)
  const here = await startServer(remoteCompletions({ name: 'far', url: `${there.url}/v1`, model: 'endless' }))
  const wire = await overWebSocket(here.url)
  await wire.open()
  await begin(wire, 'go')
  await wire.next('response.delta')
  await wire.send({ type: 'response.cancel' })
  await wire.next('response.cancelled')
  await stopped
})

/** A server that answers each request as the next of these says. */
async function answering(answers: readonly ((response: ServerResponse) => void)[]) {
  const bodies: any[] = [] // eslint-disable-line
  const server = createServer((request: IncomingMessage, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
    request.on('end', () => {
      bodies.push(JSON.parse(body))
      answers[Math.min(bodies.length, answers.length) - 1]?.(response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, bodies }
}

const sse = (...chunks: unknown[]) => {
  return (response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(chunks.map((chunk) => `data: ${typeof chunk === 'string' ? chunk : JSON.stringify(chunk)}\n\n`).join(''))
  }
}
const delta = (fields: object, finish_reason: string | null = null) => ({ choices: [{ index: 0, delta: fields, finish_reason }] })
const call = (id: string | undefined, index: number, args: string) =>
  delta({
    tool_calls: [
      {
        index,
        ...(id !== undefined && { id }),
        type: 'function',
        function: { ...(id !== undefined && { name: 'double' }), arguments: args },
      },
    ],
  })

verifies(
  'remote-completions.tool-ids',
  'several calls in pieces, with ids that come again, are told apart, and thoughts go back with them',
  async () => {
    const both = sse(
      delta({ role: 'assistant', reasoning: 'I need both.' }),
      call('call_0', 0, '{"n"'),
      call(undefined, 0, ':1}'),
      call('call_1', 1, '{"n":2}'),
      delta({}, 'tool_calls'),
      '[DONE]',
    )
    const { url, bodies } = await answering([both, both, sse(delta({ content: 'Done' }), delta({}, 'stop'), '[DONE]')])
    const here = await startServer(remoteCompletions({ name: 'far', url, model: 'm', apiKey: 'k' }))
    const wire = await overWebSocket(here.url)
    await wire.open({ session: { modalities: ['text'], tools: [DOUBLE] } })
    const answer = await begin(wire, 'go')
    const ids: string[] = []
    for (let number = 1; number <= 4; number++) {
      const { call_id, arguments: args } = (await wire.next('tool.call')) as unknown as { call_id: string; arguments: string }
      expect(args).toBe(`{"n":${((number - 1) % 2) + 1}}`)
      ids.push(call_id)
      await wire.send({ type: 'tool.result', call_id, result: String(number) })
    }
    const events = await answer.end()
    expect(new Set(ids).size).toBe(4)
    expect(textOf(events)).toBe('Done')
    expect(bodies[2].messages.slice(1)).toMatchObject([
      { role: 'assistant', reasoning: 'I need both.', tool_calls: [{ id: ids[0] }, { id: ids[1] }] },
      { role: 'tool', tool_call_id: ids[0], content: '1' },
      { role: 'tool', tool_call_id: ids[1], content: '2' },
      { role: 'assistant', tool_calls: [{ id: ids[2] }, { id: ids[3] }] },
      { role: 'tool', tool_call_id: ids[2], content: '3' },
      { role: 'tool', tool_call_id: ids[3], content: '4' },
    ])
  },
)

verifies('remote-completions.unknown-tool', 'a tool that nobody has is told to the other side as an error', async () => {
  const unknown = sse(
    delta({ tool_calls: [{ index: 0, id: 'x', function: { name: 'nothing', arguments: '{}' } }] }, 'tool_calls'),
    '[DONE]',
  )
  const { url, bodies } = await answering([unknown, sse(delta({ content: 'Sorry' }, 'stop'), '[DONE]')])
  const here = await startServer(remoteCompletions({ name: 'far', url, model: 'm' }))
  const wire = await overWebSocket(here.url)
  await wire.open()
  expect(textOf(await say(wire, 'go'))).toBe('Sorry')
  expect(bodies[1].messages.at(-1)).toMatchObject({ role: 'tool', content: expect.stringContaining('There is no tool \\"nothing\\"') })
})

const FAILURES: readonly [string, (response: ServerResponse) => void, string, RegExp][] = [
  ['a stream that is cut off', sse(delta({ content: 'Half a' })), 'provider_error', /cut off/],
  [
    'an error in the stream',
    sse(delta({ content: 'a' }), { error: { message: 'Too fast', type: 'rate_limit_error' } }),
    'rate_limited',
    /Too fast/,
  ],
  ['something that is not JSON', sse('{"choices":'), 'provider_error', /not JSON/],
  [
    'an error object under 200',
    (response) => response.end('{"error":{"message":"No such model"}}'),
    'provider_error',
    /cut off|No such model/,
  ],
  [
    'a page',
    (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Welcome</html>'),
    'provider_error',
    /is the address right/,
  ],
  ['a refusal', (response) => response.writeHead(400).end('{"error":{"message":"Bad"}}'), 'invalid_request', /far answered 400: Bad/],
]

for (const [what, answer, code, message] of FAILURES)
  verifies('remote-completions.failures', `${what} ends the response as an error`, async () => {
    const { url } = await answering([answer])
    const here = await startServer(remoteCompletions({ name: 'far', url, model: 'm' }))
    const wire = await overWebSocket(here.url)
    await wire.open()
    const end = (await say(wire, 'hi')).at(-1)
    expect(end).toMatchObject({ type: 'response.error', error: { code, message: expect.stringMatching(message) } })
  })

verifies('remote-completions.whole', 'an answer in one piece is an answer', async () => {
  const message = { role: 'assistant', content: 'Whole', reasoning_content: 'Hm' }
  const body = { choices: [{ message, finish_reason: 'stop' }], usage: { prompt_tokens: 1, completion_tokens: 2 } }
  const { url } = await answering([(response) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))])
  const here = await startServer(remoteCompletions({ name: 'far', url, model: 'm' }))
  const wire = await overWebSocket(here.url)
  await wire.open()
  expect((await say(wire, 'hi')).at(-1)).toMatchObject({
    response: {
      output: [
        { type: 'thinking', thinking: 'Hm' },
        { type: 'text', text: 'Whole' },
      ],
      usage: { input_tokens: 1, output_tokens: 2 },
    },
  })
})

verifies('remote-completions.one-way', 'over Responses the turn waits for the answer that the next request brings', async () => {
  const { here } = await pair()
  const url = `${here.url}/v1/responses`
  const tools = [{ type: 'function', name: 'double', parameters: DOUBLE.function.parameters }]
  const first = await ask(url, { model: 'far', input: '/tool double {"n":4}', tools })
  const call = first.body.output.find(({ type }: { type: string }) => type === 'function_call')
  expect(call).toMatchObject({ name: 'double', arguments: '{"n":4}' })
  const input = [{ type: 'function_call_output', call_id: call.call_id, output: '8' }]
  const second = await ask(url, { model: 'far', previous_response_id: first.body.id, input, tools })
  expect(second.body.output.at(-1)).toMatchObject({ type: 'message', content: [{ text: 'double answered: 8' }] })
})
