// @ts-check
import { createInterface } from 'node:readline'
import { setImmediate as nextTurn } from 'node:timers/promises'

/** An agent of ACP as small as it can be: JSON-RPC, one message a line. Says on standard error when an answer without end has ended. */

/** @type {Map<string, AbortController>} */
const prompts = new Map()
/** What its client was asked. @type {Map<string, (result: any) => void>} */
const asked = new Map()
let opened = 0
let cwd = ''

const send = (/** @type {object} */ message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

/** @param {string} method @param {object} params @returns {Promise<any>} */
const ask = (method, params) =>
  new Promise((resolve) => {
    const id = `ask-${asked.size}`
    asked.set(id, resolve)
    send({ id, method, params })
  })

/** @param {string} sessionId @param {object} update */
const tell = (sessionId, update) => send({ method: 'session/update', params: { sessionId, update } })

/** @param {string} sessionId @param {string} said @param {AbortSignal} signal */
async function* answer(sessionId, said, signal) {
  const [verb = '', name = ''] = said.split(' ')
  if (verb === 'endure') {
    try {
      for (let n = 1; !signal.aborted; n++) {
        yield `${n} `
        await nextTurn()
      }
    } finally {
      process.stderr.write(`ended ${name}\n`)
    }
  } else if (verb === 'use') {
    // Nobody told it of that tool. Files it has, through its client.
    const call = { toolCallId: `call-${asked.size}`, title: 'Read notes.txt', kind: 'read' }
    tell(sessionId, { sessionUpdate: 'tool_call', status: 'in_progress', ...call })
    const { content } = await ask('fs/read_text_file', { sessionId, path: `${cwd}/notes.txt` })
    tell(sessionId, { sessionUpdate: 'tool_call_update', status: 'completed', toolCallId: call.toolCallId })
    yield `There is no ${name}, but ${content}`
  } else if (verb === 'fail') {
    yield 'One moment. '
    throw new Error('I cannot do that')
  } else {
    yield* ['You ', 'said: ', said]
  }
}

/** @param {{ sessionId: string, prompt: { text?: string }[] }} params */
async function prompt({ sessionId, prompt: blocks }) {
  const cancelled = new AbortController()
  prompts.set(sessionId, cancelled)
  const said = blocks.map(({ text = '' }) => text).join('')
  for await (const text of answer(sessionId, said, cancelled.signal))
    tell(sessionId, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } })
  return { stopReason: cancelled.signal.aborted ? 'cancelled' : 'end_turn' }
}

/** @param {string} method @param {any} params */
async function handle(method, params) {
  if (method === 'initialize') return { protocolVersion: 1, agentCapabilities: {}, authMethods: [] }
  if (method === 'session/new') {
    cwd = params.cwd
    return { sessionId: `s${++opened}` }
  }
  if (method === 'session/prompt') return prompt(params)
  throw new Error(`There is no method ${method}`)
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, result: given } = JSON.parse(line)
  if (method === undefined) asked.get(id)?.(given ?? {})
  if (method === 'session/cancel') prompts.get(params.sessionId)?.abort()
  if (id === undefined || method === undefined) continue
  handle(method, params).then(
    (result) => send({ id, result }),
    (error) => send({ id, error: { code: -32603, message: error.message } }),
  )
}
