// @ts-check
import { createInterface } from 'node:readline'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { setImmediate as nextTurn } from 'node:timers/promises'

/** An agent of ACP as small as it can be: JSON-RPC, one message a line. Says on standard error when an answer without end has ended. */

/** @type {Map<string, AbortController>} */
const prompts = new Map()
/** The MCP servers of its sessions. @type {Map<string, Client[]>} */
const servers = new Map()
let opened = 0

const send = (/** @type {object} */ message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

/** @param {string} sessionId @param {object} update */
const tell = (sessionId, update) => send({ method: 'session/update', params: { sessionId, update } })

/** Calls a tool of the session's MCP servers. @param {string} sessionId @param {string} name @param {Record<string, unknown>} args */
async function use(sessionId, name, args) {
  for (const server of servers.get(sessionId) ?? []) {
    const { tools } = await server.listTools()
    if (!tools.some((tool) => tool.name === name)) continue
    const { content } = await server.callTool({ name, arguments: args })
    return content.map((part) => (part.type === 'text' ? part.text : '')).join('')
  }
}

/** @param {{ url: string, headers: { name: string, value: string }[] }} server */
async function connect({ url, headers }) {
  const client = new Client({ name: 'acp-agent', version: '1' })
  const requestInit = { headers: Object.fromEntries(headers.map(({ name, value }) => [name, value])) }
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }))
  return client
}

/** @param {string} sessionId @param {string} said @param {AbortSignal} signal */
async function* answer(sessionId, said, signal) {
  const [verb = '', name = '', ...rest] = said.split(' ')
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
    const call = { toolCallId: `call-${sessionId}`, title: `Use ${name}`, rawInput: JSON.parse(rest.join(' ')) }
    tell(sessionId, { sessionUpdate: 'tool_call', status: 'in_progress', ...call })
    const result = await use(sessionId, name, call.rawInput)
    tell(sessionId, { sessionUpdate: 'tool_call_update', status: 'completed', toolCallId: call.toolCallId })
    yield result === undefined ? `There is no ${name}` : `${name} said ${result}`
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
  if (method === 'initialize') return { protocolVersion: 1, agentCapabilities: { mcpCapabilities: { http: true } }, authMethods: [] }
  if (method === 'session/new') {
    const sessionId = `s${++opened}`
    servers.set(sessionId, await Promise.all(params.mcpServers.map(connect)))
    return { sessionId }
  }
  if (method === 'session/prompt') return prompt(params)
  throw new Error(`There is no method ${method}`)
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (method === 'session/cancel') prompts.get(params.sessionId)?.abort()
  if (id === undefined || method === undefined) continue
  handle(method, params).then(
    (result) => send({ id, result }),
    (error) => send({ id, error: { code: -32603, message: error.message } }),
  )
}
