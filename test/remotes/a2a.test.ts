import { expect } from 'vitest'
import type { RequirementId } from '../../spec/requirements.ts'
import { say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import type { Heard } from '../support/wire.ts'
import { behind, chunk, made, streams, wires } from './a2a/peer.ts'
import { v03Rest } from './a2a/v03-rest.ts'
import { v1JsonRpc } from './a2a/v1.ts'
import type { Call } from './a2a/wire.ts'
import { begin } from './plain.ts'

const PNG = 'iVBORw0KGgo='

const deltas = (events: readonly Heard[]): string[] => events.flatMap(({ type, delta }) => (type === 'response.delta' ? [delta.text] : []))
const outputOf = (events: readonly Heard[]) => events.at(-1)?.['response'].output
/** Without what depends on when the card came. */
const typesOf = (events: readonly Heard[]): string[] => events.map(({ type }) => type).filter((type) => type !== 'capabilities')

/** One agent in the words of each generation. Citations are found in the source, so each is written out. */
const rows: readonly { readonly verifies: readonly RequirementId[]; readonly name: string }[] = [
  { verifies: ['a2a-remote.stream', 'a2a-remote.version'], name: '1.0 over JSON-RPC' },
  { verifies: ['a2a-remote.stream', 'a2a-remote.tenant'], name: '1.0 over REST' },
  { verifies: ['a2a-remote.0.3'], name: '0.3 over JSON-RPC' },
  { verifies: ['a2a-remote.0.3-rest'], name: '0.3 over REST' },
  { verifies: ['a2a-remote.0.2'], name: '0.2 over JSON-RPC' },
  { verifies: ['a2a-remote.0.1'], name: '0.1 over JSON-RPC' },
]

for (const { verifies: ids, name } of rows) {
  const wire = wires.find((one) => one.name === name)
  if (!wire) throw new Error(`There is no ${name}`)

  verifies(ids, `${name}: text streams as it comes, and the task that repeats it at the end adds nothing`, async () => {
    const { client, there } = await behind(
      wire,
      streams({ task: 'submitted' }, { status: 'working' }, chunk('Hel', false), chunk('lo '), chunk('there'), {
        task: 'completed',
        ...made('Hello there'),
      }),
    )
    const events = await say(client, 'hi')
    expect(deltas(events)).toEqual(['Hel', 'lo ', 'there'])
    expect(outputOf(events)).toEqual([{ type: 'text', text: 'Hello there' }])
    expect(there.calls.map(({ op, texts }) => [op, texts])).toEqual([['stream', ['hi']]])
    expect(there.calls[0]?.request.headers['a2a-version']).toBe(name.startsWith('1.0') ? '1.0' : undefined)
    if (name === '1.0 over JSON-RPC') expect(there.calls[0]?.body['params']).toMatchObject({ tenant: 'acme' })
  })

  verifies('a2a-remote.capability', `${name}: an agent that does not stream is asked, and looked at until it is done`, async () => {
    let looks = 0
    const { client, there } = await behind(
      wire,
      ({ op }, reply) => {
        if (op === 'send') reply.whole({ task: 'working' })
        else if (++looks === 1) reply.whole({ task: 'working', ...made('One') })
        else reply.whole({ task: 'completed', ...made('One, two') })
      },
      { streaming: false },
    )
    expect(deltas(await say(client, 'count'))).toEqual(['One', ', two'])
    expect(there.calls.map(({ op }) => op)).toEqual(['send', 'get', 'get'])
    expect(there.calls[1]?.taskId).toBe('task-1')
  })

  verifies('a2a-remote.message', `${name}: a message is an answer`, async () => {
    const { client } = await behind(wire, streams({ message: { parts: [{ text: 'Hello' }, { raw: PNG, mediaType: 'image/png' }] } }))
    expect(outputOf(await say(client, 'hi'))).toEqual([
      { type: 'text', text: 'Hello' },
      { type: 'image', image: PNG, format: 'png', content_id: expect.any(String) },
    ])
  })

  verifies('a2a-remote.parts', `${name}: artifacts are content items, and content items parts`, async () => {
    const { client, there } = await behind(
      wire,
      streams(
        { task: 'working' },
        { artifact: { id: 'a1', name: 'report', parts: [{ raw: 'aGk=', mediaType: 'application/pdf', filename: 'report.pdf' }] } },
        { artifact: { id: 'a2', parts: [{ url: 'https://media.example/a.mp4', mediaType: 'video/mp4' }] } },
        { artifact: { id: 'a3', parts: [{ data: { answer: 42 } }] } },
        { status: 'completed' },
      ),
    )
    await client.send({ type: 'input.image', image: PNG, format: 'png' })
    await client.send({ type: 'input.file', file: { url: 'https://media.example/a.pdf' }, filename: 'a.pdf', mime_type: 'application/pdf' })
    await client.send({ type: 'input.file', file: btoa('{"n":1}'), filename: 'data.json', mime_type: 'application/json' })
    const id = { content_id: expect.any(String) }
    expect(outputOf(await say(client, 'make'))).toEqual([
      { type: 'file', file: 'aGk=', filename: 'report.pdf', mime_type: 'application/pdf', ...id },
      { type: 'video', video: { url: 'https://media.example/a.mp4' }, format: 'mp4', ...id },
      { type: 'file', file: btoa('{"answer":42}'), filename: 'data.json', mime_type: 'application/json', ...id },
    ])
    const sent = there.calls[0]?.message
    expect(sent?.['parts'] ?? sent?.['content']).toEqual(SENT[name.split(' ')[0] + (wire === v03Rest ? ' REST' : '')])
  })

  verifies('a2a-remote.follow-up', `${name}: a question in words ends the response, and the answer goes to the same task`, async () => {
    const question = { id: 'm1', parts: [{ text: 'Which city?' }] }
    const { client, there } = await behind(wire, ({ op, texts }, reply) => {
      if (op === 'get') return reply.whole({ task: 'input-required', said: question })
      if (texts[0] === 'weather') reply.tell({ task: 'working' }, { status: 'input-required', said: question })
      // A server may begin with the task as it was before the answer.
      else if (texts[0] === 'Oslo') reply.tell({ task: 'input-required', said: question }, { status: 'working' })
      if (texts[0] !== 'weather') reply.tell(chunk('Sunny', false), { status: 'completed' })
      reply.end()
    })
    expect((await say(client, 'weather')).at(-1)).toMatchObject({
      type: 'response.done',
      response: { output: [{ type: 'text', text: 'Which city?' }], extensions: { uamp: { stop_reason: 'input_required' } } },
    })
    expect(textOf(await say(client, 'Oslo'))).toBe('Sunny')
    expect(textOf(await say(client, 'thanks'))).toBe('Sunny')
    const [, second, third] = there.of('stream')
    expect(second).toMatchObject({ taskId: 'task-1', contextId: 'context-1', texts: ['Oslo'] })
    // The task has ended, but not the conversation.
    expect(third).toMatchObject({ contextId: 'context-1', texts: ['thanks'] })
    expect(third?.taskId).not.toBe('task-1')
  })

  verifies('a2a-remote.states', `${name}: a task that fails, is rejected or cancelled there`, async () => {
    const ends = {
      plain: { status: 'failed', said: { parts: [{ text: 'Out of cheese' }] } },
      silent: { status: 'failed' },
      coded: { status: 'failed', said: { parts: [{ text: 'Slow down' }], metadata: { code: 'rate_limited' } } },
      rejected: { status: 'rejected', said: { parts: [{ text: 'Not mine to do' }] } },
      canceled: { status: 'canceled' },
    } as const
    const { client } = await behind(wire, ({ texts }, reply) => {
      reply.tell({ task: 'working' }, chunk('Well', false), ends[texts.join() as keyof typeof ends])
      reply.end()
    })
    const endOf = async (how: keyof typeof ends) => {
      const events = await say(client, how)
      expect(textOf(events)).toBe('Well')
      return events.at(-1)
    }
    expect(await endOf('plain')).toMatchObject({ type: 'response.error', error: { code: 'provider_error', message: 'Out of cheese' } })
    expect(await endOf('silent')).toMatchObject({ type: 'response.error', error: { code: 'provider_error', message: '"far" failed' } })
    expect(await endOf('coded')).toMatchObject({ type: 'response.error', error: { code: 'rate_limited', message: 'Slow down' } })
    expect(await endOf('rejected')).toMatchObject({ type: 'response.error', error: { code: 'forbidden', message: 'Not mine to do' } })
    expect(await endOf('canceled')).toMatchObject({ type: 'response.cancelled', partial_output: [{ type: 'text', text: 'Well' }] })
  })

  verifies('a2a-remote.cancel', `${name}: a cancel here cancels the task there`, async () => {
    let cancelled: (call: Call) => void = () => undefined
    const cancel = new Promise<Call>((resolve) => (cancelled = resolve))
    const { client } = await behind(wire, (call, reply) => {
      if (call.op === 'stream') return reply.tell({ task: 'working' }, chunk('Well', false))
      reply.whole({ task: 'canceled' })
      cancelled(call)
    })
    await begin(client, 'go')
    await client.next('response.delta')
    await client.send({ type: 'response.cancel' })
    await client.next('response.cancelled')
    expect(await cancel).toMatchObject({ op: 'cancel', taskId: 'task-1' })
  })

  verifies('a2a-remote.errors', `${name}: a refusal is told as one of our errors`, async () => {
    const codes = { '-32602': 'invalid_request', '-32001': 'not_found', '-32603': 'provider_error' }
    const { client } = await behind(wire, ({ texts }, reply) => reply.refuse(Number(texts.at(-1)), 'the reason'))
    for (const [code, is] of Object.entries(codes)) {
      const end = (await say(client, code)).at(-1)
      expect(end).toMatchObject({ type: 'response.error', error: { code: is, message: expect.stringContaining('the reason') } })
    }
  })
}

/** What the parts of one message are in each. */
const FILE = { bytes: PNG, mimeType: 'image/png' }
const LINK = { uri: 'https://media.example/a.pdf', name: 'a.pdf', mimeType: 'application/pdf' }
const kinds = (key: string): object[] => [
  { [key]: 'file', file: FILE },
  { [key]: 'file', file: LINK },
  { [key]: 'data', data: { n: 1 } },
  { [key]: 'text', text: 'make' },
]
const SENT: Readonly<Record<string, readonly object[]>> = {
  '1.0': [
    { raw: PNG, mediaType: 'image/png' },
    { url: 'https://media.example/a.pdf', mediaType: 'application/pdf', filename: 'a.pdf' },
    { data: { n: 1 } },
    { text: 'make' },
  ],
  '0.3': kinds('kind'),
  '0.2': kinds('kind'),
  '0.1': kinds('type'),
  '0.3 REST': [
    { file: { fileWithBytes: PNG, mimeType: 'image/png' } },
    { file: { fileWithUri: 'https://media.example/a.pdf', name: 'a.pdf', mimeType: 'application/pdf' } },
    { data: { data: { n: 1 } } },
    { text: 'make' },
  ],
}

verifies('a2a-remote.follow-up', 'who looks at the task too early does not take the old question for a new one', async () => {
  const question = { id: 'm1', parts: [{ text: 'Which city?' }] }
  let looks = 0
  const { client, there } = await behind(
    v1JsonRpc,
    ({ op, taskId, texts }, reply) => {
      if (op === 'send' || (op === 'get' && ++looks < 4)) return reply.whole({ task: 'input-required', said: question })
      reply.whole({ task: 'completed', ...made(`Sunny in ${taskId} ${texts.join()}`) })
    },
    { streaming: false },
  )
  expect(textOf(await say(client, 'weather'))).toBe('Which city?')
  expect(textOf(await say(client, 'Oslo'))).toBe('Sunny in task-1 ')
  expect(there.calls.map(({ op }) => op)).toEqual(['send', 'get', 'send', 'get', 'get', 'get'])
})

verifies([], 'what an agent says while it works is progress, and its answer where it says nothing else', async () => {
  const { client } = await behind(v1JsonRpc, ({ texts }, reply) => {
    reply.tell({ task: 'submitted' }, { status: 'working', said: { parts: [{ text: 'Looking it up' }] } })
    if (texts[0] === 'answer') reply.tell(chunk('Found', false))
    reply.tell({ status: 'completed' })
    reply.end()
  })
  const events = await say(client, 'answer')
  expect(typesOf(events)).toEqual(['response.created', 'progress', 'response.delta', 'response.done'])
  expect(events.find(({ type }) => type === 'progress')).toMatchObject({ target: 'response', message: 'Looking it up' })
  expect(textOf(await say(client, 'nothing'))).toBe('Looking it up')
})

verifies([], 'what an agent says with its end is told, unless its artifacts told it before', async () => {
  const { client } = await behind(v1JsonRpc, ({ texts }, reply) => {
    reply.tell({ task: 'working' }, chunk('It is done.', false))
    reply.tell({ status: 'completed', said: { parts: [{ text: texts[0] === 'same' ? 'It is done.' : 'Anything else?' }] } })
    reply.end()
  })
  expect(textOf(await say(client, 'same'))).toBe('It is done.')
  expect(textOf(await say(client, 'other'))).toBe('It is done.\n\nAnything else?')
})

verifies([], 'metadata and what was used are kept', async () => {
  const { client } = await behind(
    v1JsonRpc,
    streams({ task: 'working', metadata: { trace: 't1' } }, chunk('Hi', false), {
      status: 'completed',
      metadata: { usage: { prompt_tokens: 3, completion_tokens: 2 } },
    }),
  )
  expect((await say(client, 'hi')).at(-1)).toMatchObject({
    response: {
      usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
      extensions: { a2a: { taskId: 'task-1', contextId: 'context-1', metadata: { trace: 't1' } } },
    },
  })
})

verifies('a2a-remote.auth-required', 'a task that wants an authorisation ends the response with that, and is not cancelled', async () => {
  const { client, there } = await behind(v1JsonRpc, ({ op, texts }, reply) => {
    if (op === 'get') return reply.whole({ task: 'auth-required' })
    if (texts[0] !== 'done') return reply.tell({ task: 'working' }, { status: 'auth-required', said: { parts: [{ text: 'Log in at …' }] } })
    reply.tell({ task: 'working' }, chunk('Welcome', false), { status: 'completed' })
    reply.end()
  })
  expect((await say(client, 'mail')).at(-1)).toMatchObject({
    response: { output: [{ text: 'Log in at …' }], extensions: { uamp: { stop_reason: 'auth_required' } } },
  })
  expect(textOf(await say(client, 'done'))).toBe('Welcome')
  expect(there.calls.map(({ op, taskId }) => [op, taskId])).toEqual([
    ['stream', undefined],
    ['get', 'task-1'],
    ['stream', 'task-1'],
  ])
})
