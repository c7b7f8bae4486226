// @ts-check
import { randomUUID } from 'node:crypto'

/** @typedef {{ path: string, body: (text: string) => object, stream: boolean, constant?: boolean, headers?: string, parse: (text: string) => { deltas: string[], whole: string, signature?: string } }} Surface `constant`: the same text is always asked for with the same bytes */

/** @type {Surface} */
const RESPONSES = {
  path: '/v1/responses',
  stream: true,
  body: (text) => ({ model: 'demo', input: text, stream: true }),
  parse: (text) => {
    const events = dataLines(text).map((line) => JSON.parse(line))
    if (events.some(({ sequence_number: number }, i) => number !== i)) throw new Error('sequence_number has a hole')
    const last = events.at(-1)
    if (last.type !== 'response.completed') throw new Error(`the answer ends with ${last.type}`)
    const deltas = events.filter(({ type }) => type === 'response.output_text.delta').map(({ delta }) => delta)
    return { deltas, whole: last.response.output[0].content[0].text }
  },
}

/** A2A 1.0 over JSON-RPC. A task is answered whole, or as it is made. @param {'SendMessage' | 'SendStreamingMessage'} method */
const a2a = (method) => ({
  path: '/a2a',
  headers: 'A2A-Version: 1.0\r\n',
  stream: method === 'SendStreamingMessage',
  body: (/** @type {string} */ text) => ({
    jsonrpc: '2.0',
    id: 1,
    method,
    params: { message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }] } },
  }),
})

/** Tokens of a message in a long conversation; a token is a word of four letters. */
const TOKENS = 250

/** What was said before. @param {number} tokens */
const conversation = (tokens) =>
  Array.from({ length: Math.ceil(tokens / TOKENS) }, (_, i) => ({
    role: i % 2 ? 'assistant' : 'user',
    content: 'word '.repeat(Math.min(TOKENS, tokens - i * TOKENS)),
  }))

/** @type {Surface} */
const COMPLETIONS_ONCE = {
  path: '/v1/chat/completions',
  stream: false,
  body: (text) => ({ model: 'demo', messages: [{ role: 'user', content: text }] }),
  parse: (text) => {
    const { choices } = JSON.parse(text)
    if (choices[0].finish_reason !== 'stop') throw new Error('the choice has no finish_reason')
    return { deltas: [choices[0].message.content], whole: choices[0].message.content }
  },
}

/** The whole conversation in each request, as clients of Chat Completions send it. @param {number} tokens @returns {Surface} */
function after(tokens) {
  const said = conversation(tokens)
  return { ...COMPLETIONS_ONCE, constant: true, body: (text) => ({ model: 'demo', messages: [...said, { role: 'user', content: text }] }) }
}

/** What a client of each surface sends, and how its answer is checked. @type {Record<string, Surface>} */
export const SURFACES = {
  completions: {
    path: '/v1/chat/completions',
    stream: true,
    body: (text) => ({ model: 'demo', messages: [{ role: 'user', content: text }], stream: true }),
    parse: (text) => {
      const lines = dataLines(text)
      if (lines.pop() !== '[DONE]') throw new Error('the answer does not end with [DONE]')
      const chunks = lines.map((line) => JSON.parse(line))
      const choices = chunks.flatMap((chunk) => chunk.choices)
      if (choices[0].delta.role !== 'assistant') throw new Error('the first chunk has no role')
      if (choices.at(-1).finish_reason !== 'stop') throw new Error('the last chunk has no finish_reason')
      const deltas = choices.map(({ delta }) => delta.content ?? '').filter((content) => content !== '')
      return { deltas, whole: deltas.join(''), signature: chunks.at(-1).signature }
    },
  },
  'completions-once': COMPLETIONS_ONCE,
  'completions-16k': after(3200),
  'completions-100k-tokens': after(100_000),
  responses: RESPONSES,
  'responses-unstored': { ...RESPONSES, body: (text) => ({ ...RESPONSES.body(text), store: false }) },
  a2a: {
    ...a2a('SendStreamingMessage'),
    parse: (text) => {
      const results = dataLines(text).map((line) => JSON.parse(line).result)
      if (!results[0].task) throw new Error('the stream does not begin with the task')
      if (results.at(-1).statusUpdate?.status.state !== 'TASK_STATE_COMPLETED') throw new Error('the task is not completed')
      const chunks = results.flatMap(({ artifactUpdate }) => (artifactUpdate ? [artifactUpdate] : []))
      if (chunks.some(({ append }, i) => (append ?? false) !== i > 0)) throw new Error('a chunk does not say that it is appended')
      const deltas = chunks.map(({ artifact }) => artifact.parts[0].text ?? '').filter((delta) => delta !== '')
      return { deltas, whole: deltas.join('') }
    },
  },
  'ag-ui': {
    path: '/ag-ui',
    stream: true,
    body: (text) => ({
      threadId: randomUUID(),
      runId: randomUUID(),
      protocolVersion: '1.0',
      state: {},
      messages: [{ id: randomUUID(), role: 'user', content: text }],
      tools: [],
      context: [],
      forwardedProps: {},
    }),
    parse: (text) => {
      const events = dataLines(text).map((line) => JSON.parse(line))
      if (events[0].type !== 'RUN_STARTED') throw new Error('the run does not begin with RUN_STARTED')
      if (events.at(-1).outcome?.type !== 'success') throw new Error('the run was no success')
      const deltas = events.filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT').map(({ delta }) => delta)
      return { deltas, whole: deltas.join('') }
    },
  },
  'a2a-once': {
    ...a2a('SendMessage'),
    parse: (text) => {
      const { task } = JSON.parse(text).result
      if (task.status.state !== 'TASK_STATE_COMPLETED') throw new Error(`the task is ${task.status.state}`)
      return { deltas: [task.artifacts[0].parts[0].text], whole: task.artifacts[0].parts[0].text }
    },
  },
}

/** @param {string} text */
function dataLines(text) {
  return text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [line.slice(6)] : []))
}
