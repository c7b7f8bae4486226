// @ts-check
import { message } from './tally.js'

/** @typedef {import('./ws-client.js').WsClient} WsClient */
/**
 * What a client of one protocol says over a WebSocket, and how it tells the deltas of an answer from everything else.
 *
 * @typedef {object} Dialect
 * @property {string} path
 * @property {string} greeting what comes first; `open`: nothing, once the socket is there
 * @property {string} delta the type of a delta
 * @property {string} end the type of what an answer ends with
 * @property {number} peek as many bytes of a message tell a delta from the others
 * @property {(bytes: Buffer, at: number) => boolean} isDelta
 * @property {(text: string) => string} typeOf
 * @property {(client: WsClient, greeting: any) => Promise<string>} open gives the session's id
 * @property {(text: string, sessionId: string) => string[]} ask
 * @property {(deltas: any[], end: any, expected: string) => void} check
 */

const firstField = (/** @type {string} */ text) => text.slice(9, text.indexOf('"', 9))

/** @type {Dialect} */
export const EVENTS = {
  path: '/uamp',
  greeting: 'open',
  delta: 'response.delta',
  end: 'response.done',
  // `{"type":"response.de`
  peek: 20,
  isDelta: (bytes, at) => bytes[at + 9] === 114 && bytes[at + 18] === 100 && bytes[at + 19] === 101,
  typeOf: firstField,
  async open(client) {
    const created = client.tally.until('session.created')
    client.send(message('session.create', { uamp_version: '1.0', session: { modalities: ['text'] } }))
    const { event } = await created
    return event.session_id ?? event.session.id
  },
  ask: (text, session_id) => [message('input.text', { session_id, text }), message('response.create', { session_id })],
  check(deltas, end, expected) {
    same(deltas.map(({ delta }) => delta.text).join(''), expected)
    if (deltas.some(({ seq }, i) => seq !== deltas[0].seq + i)) throw new Error('seq has a hole')
    same(end.response.output[0].text, expected)
  },
}

/** Session ids have a fixed length, so the kind of an update stands in a fixed place. */
const ID = `sess_${'0'.repeat(36)}`
const KIND = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"${ID}","update":{"sessionUpdate":"`.length
let requests = 0
const request = (/** @type {string} */ method, /** @type {object} */ params) =>
  JSON.stringify({ jsonrpc: '2.0', id: ++requests, method, params })

/** @type {Dialect} */
const ACP = {
  path: '/acp',
  greeting: 'open',
  delta: 'agent_message_chunk',
  end: 'answer',
  // The `m` of `method`, and `agent_m`.
  peek: KIND + 7,
  isDelta: (bytes, at) => bytes[at + 18] === 109 && bytes[at + KIND] === 97 && bytes[at + KIND + 6] === 109,
  typeOf(text) {
    const { type, method, params, error } = JSON.parse(text)
    return type ?? params?.update?.sessionUpdate ?? method ?? (error ? 'error' : 'answer')
  },
  async open(client) {
    const initialized = client.tally.until('answer')
    client.send(request('initialize', { protocolVersion: 1, clientCapabilities: {} }))
    await initialized
    const opened = client.tally.until('answer')
    client.send(request('session/new', { cwd: '/', mcpServers: [] }))
    return (await opened).event.result.sessionId
  },
  ask: (text, sessionId) => [request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })],
  check(deltas, end, expected) {
    same(deltas.map(({ params }) => params.update.content.text).join(''), expected)
    if (end.result.stopReason !== 'end_turn') throw new Error(`stopped by ${end.result.stopReason}`)
  },
}

/** @type {Dialect} */
const OMNIA = {
  path: '/omnia',
  greeting: 'connected',
  delta: 'chunk',
  end: 'done',
  // `{"type":"ch`
  peek: 11,
  isDelta: (bytes, at) => bytes[at + 9] === 99 && bytes[at + 10] === 104,
  typeOf: firstField,
  open: async (_, greeting) => greeting.session_id,
  ask: (content, session_id) => [JSON.stringify({ type: 'message', session_id, content })],
  check(deltas, end, expected) {
    same(deltas.map(({ content }) => content).join(''), expected)
    same(end.content, expected)
  },
}

/** By transport. @type {Record<string, Dialect>} */
export const DIALECTS = { ws: EVENTS, acp: ACP, omnia: OMNIA }

/** @param {string} text @param {string} expected */
function same(text, expected) {
  if (text.trim() !== expected) throw new Error(`wrong answer: ${text.slice(0, 200)}`)
}
