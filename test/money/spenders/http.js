// @ts-check
import { eventsOf, request } from '../../support/killed/wire.js'
import { Gone } from '../../support/violation.js'
import { told } from '../told.js'

/** @typedef {import('../told.js').Plan} Plan */
/** @typedef {import('../told.js').Spend} Spend */
/** What one event says: more text, or how the answer ended. @typedef {{ text?: string, end?: import('../told.js').Told['outcome'], error?: string }} Step */

const HEADERS = ['payment-signature', 'x-payment', 'x-payment-token']
/** The server is shutting down, or has just begun. */
const AWAY = 503

/**
 * @typedef {object} Protocol
 * @property {string} by
 * @property {string} path
 * @property {(plan: Plan) => object} body
 * @property {Record<string, string>} [headers]
 * @property {(body: any) => Step} [whole] reads an answer in one piece
 * @property {(event: any) => Step} [event] reads one event of a stream
 * @property {(error: string) => object} [paying] what else the message says that pays for what an earlier one has asked for
 */

/** @param {Protocol} protocol @returns {Spend} */
function over(protocol) {
  return async (plan) => {
    const { url, agent, isAsked } = plan
    const body = protocol.body(plan)
    const { stop } = plan
    const leave = new AbortController()
    const path = protocol.path.startsWith('/v1') ? `${url}${protocol.path}` : `${url}/agents/${agent}${protocol.path}`
    const post = async (/** @type {Record<string, string>} */ paid, /** @type {object} */ sent) => {
      const headers = { ...protocol.headers, ...authorized(plan), ...paid }
      return read(protocol, plan, { response: await request(path, { body: sent, headers, signal: leave.signal }), leave })
    }
    const payment = { [plan.random.pick(HEADERS)]: plan.token }
    if (!isAsked) return post(payment, body)
    plan.stop = undefined
    const first = await post({}, body)
    if (first?.outcome !== 'unpaid') return first
    plan.stop = stop
    return post(payment, protocol.paying ? { ...body, ...protocol.paying(first.error) } : body)
  }
}

/** @param {Protocol} protocol @param {Plan} plan @param {{ response: Response, leave: AbortController }} answer */
async function read({ by, whole, event }, plan, { response, leave }) {
  if (response.status === AWAY) throw new Gone('the server shuts down')
  if (response.status >= 400) {
    const error = await response.text().catch(gone)
    return told(by, plan, { text: '', outcome: response.status === 402 ? 'unpaid' : 'failed', error: `${response.status} ${error}` })
  }
  const type = response.headers.get('content-type') ?? ''
  if (whole && type.includes('json') && !type.includes('ndjson')) {
    if (plan.stop) {
      leave.abort()
      return undefined
    }
    const { text = '', end = 'failed', error = '' } = whole(await response.json().catch(gone))
    return told(by, plan, { text, outcome: end, error })
  }
  let said = ''
  for await (const { data } of eventsOf(response)) {
    if (data === '[DONE]') break
    const { text = '', end, error = '' } = /** @type {(event: any) => Step} */ (event)(JSON.parse(data))
    said += text
    if (end) return told(by, plan, { text: said, outcome: end, error })
    if (plan.stop && said !== '') {
      leave.abort()
      return undefined
    }
  }
  throw new Gone('the stream was cut')
}

/** @param {Plan} plan @returns {Record<string, string>} */
function authorized({ secret }) {
  return secret === undefined ? {} : { authorization: `Bearer ${secret}` }
}

/** @param {unknown} error @returns {never} */
function gone(error) {
  throw new Gone(String(error), { cause: error })
}

/** Some agents fail in another place if they are told to. @param {Plan} plan */
const said = ({ agent, random }) => (agent === 'fails' && random.chance(0.5) ? 'at once' : 'hello')

/** @param {{ stream: boolean, store: boolean }} how @returns {Protocol} */
const completions = ({ stream, store }) => ({
  by: `completions${stream ? ' streamed' : ''}${store ? ' stored' : ''}`,
  path: '/v1/chat/completions',
  body: (plan) => ({ model: plan.agent, stream, store, messages: [{ role: 'user', content: said(plan) }] }),
  whole: ({ choices: [{ message, finish_reason: reason }] }) => ({
    text: message.content ?? '',
    end: reason === 'stop' ? 'done' : 'failed',
  }),
  event: ({ choices: [choice] = [], error }) => ({
    text: choice?.delta?.content ?? '',
    ...(error && { end: unpaidOr('failed', error), error: JSON.stringify(error) }),
    ...(choice?.finish_reason && { end: choice.finish_reason === 'stop' ? 'done' : 'failed' }),
  }),
})

/** @param {{ stream: boolean, store: boolean }} how @returns {Protocol} */
const responses = ({ stream, store }) => ({
  by: `responses${stream ? ' streamed' : ''}${store ? ' stored' : ''}`,
  path: '/v1/responses',
  body: (plan) => ({ model: plan.agent, stream, store, input: said(plan) }),
  whole: (response) => endOfResponse(response),
  event: ({ type, delta, response }) => {
    if (type === 'response.output_text.delta') return { text: delta }
    return /^response\.(completed|failed|incomplete)$/.test(type) ? { ...endOfResponse(response), text: '' } : {}
  },
})

/** @param {any} response @returns {Step} */
function endOfResponse({ status, output = [], error }) {
  const text = output
    .flatMap((/** @type {any} */ { content = [] }) => content)
    .map((/** @type {any} */ part) => part.text ?? '')
    .join('')
  if (status === 'completed') return { text, end: 'done' }
  return { text, end: status === 'failed' ? unpaidOr('failed', error) : 'cancelled', error: JSON.stringify(error) }
}

/** @param {import('../told.js').Told['outcome']} outcome @param {unknown} error */
function unpaidOr(outcome, error) {
  return JSON.stringify(error ?? '').includes('payment_required') ? 'unpaid' : outcome
}

const STATES = /** @type {const} */ ({
  TASK_STATE_COMPLETED: 'done',
  TASK_STATE_FAILED: 'failed',
  TASK_STATE_REJECTED: 'failed',
  TASK_STATE_CANCELED: 'cancelled',
  TASK_STATE_INPUT_REQUIRED: 'unpaid',
})

/** @param {any[]} parts @returns {string} */
const textIn = (parts = []) => parts.map(({ text = '' }) => text).join('')

/** @param {any} status @returns {Step} */
function endOfTask(status) {
  const end = STATES[/** @type {keyof typeof STATES} */ (status?.state)]
  return end ? { end, error: JSON.stringify(status) } : {}
}

/** @param {'send' | 'stream'} method @returns {Protocol} */
const a2a = (method) => ({
  by: `a2a ${method}`,
  path: `/a2a/rest/message:${method}`,
  headers: { 'a2a-version': '1.0' },
  body: (plan) => ({ message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: said(plan) }] } }),
  whole: ({ task }) => ({
    text: textIn((task.artifacts ?? []).flatMap((/** @type {any} */ { parts }) => parts)),
    ...endOfTask(task.status),
  }),
  paying: (error) => {
    const { taskId, contextId } = JSON.parse(error).message
    return { message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'paid' }], taskId, contextId } }
  },
  event: ({ task, statusUpdate, artifactUpdate }) => ({
    text: artifactUpdate ? textIn(artifactUpdate.artifact.parts) : '',
    ...endOfTask((task ?? statusUpdate)?.status),
  }),
})

const WORDS = /** @type {const} */ ({ completed: 'done', failed: 'failed', cancelled: 'cancelled' })

/** @type {Protocol} */
const tasks = {
  by: 'tasks',
  path: '/tasks',
  body: (plan) => ({ message: { role: 'user', parts: [{ type: 'text', text: said(plan) }] } }),
  whole: () => ({}),
  event: (event) => {
    const { status, status_code: code, parts } = event
    const text = textIn(parts)
    const outcome = WORDS[/** @type {keyof typeof WORDS} */ (status)]
    return { text, ...(outcome && { end: code === 402 ? 'unpaid' : outcome, error: JSON.stringify(event) }) }
  },
}

/** @type {Protocol} */
const agUi = {
  by: 'ag-ui',
  path: '/ag-ui',
  headers: { accept: 'text/event-stream' },
  body: (plan) => ({
    threadId: crypto.randomUUID(),
    runId: crypto.randomUUID(),
    protocolVersion: '1.0',
    messages: [{ id: 'm', role: 'user', content: said(plan) }],
  }),
  event: ({ type, delta, outcome, ...event }) => {
    if (type === 'TEXT_MESSAGE_CONTENT') return { text: delta }
    if (type === 'RUN_FINISHED') return { end: outcome?.type === 'interrupt' ? 'unpaid' : 'done', error: JSON.stringify(outcome ?? '') }
    return type === 'RUN_ERROR' ? { end: unpaidOr('failed', event), error: JSON.stringify(event) } : {}
  },
}

/** Everything that is paid by a header. @type {Readonly<Record<string, Spend>>} */
export const HTTP = Object.fromEntries(
  [
    ...[true, false].flatMap((stream) => [true, false].flatMap((store) => [completions({ stream, store }), responses({ stream, store })])),
    a2a('send'),
    a2a('stream'),
    tasks,
    agUi,
  ].map((protocol) => [protocol.by, over(protocol)]),
)
