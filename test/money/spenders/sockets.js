// @ts-check
import { CREATE, overSocket, overSse } from '../../support/killed/events-wire.js'
import { Rpc } from '../../support/killed/rpc.js'
import { openSocket } from '../../support/killed/wire.js'
import { Gone } from '../../support/violation.js'
import { Inbox, told } from '../told.js'

/** @typedef {import('../told.js').Plan} Plan */
/** @typedef {import('../told.js').Spend} Spend */

/** @param {Plan} plan */
const place = ({ url, agent }) => `${url}/agents/${agent}`

/** @param {string} by @param {typeof overSocket} binding @returns {Spend} */
const events = (by, binding) => async (plan) => {
  const { token, isAsked, random } = plan
  const inbox = new Inbox()
  const inSession = !isAsked && random.chance(0.5)
  const create = { ...CREATE, event_id: crypto.randomUUID(), ...(inSession && { payment_token: token }) }
  const { session, link } = await binding.open(place(plan), create, {
    event: (event) => inbox.put(event),
    acked: () => undefined,
    refused: (_, error) => inbox.put({ type: 'refused', error }),
    closed: () => inbox.end(),
  })
  const send = (/** @type {object[]} */ ...all) =>
    link.send(all.map((event) => ({ session_id: session, event_id: crypto.randomUUID(), ...event })))
  let text = ''
  let tries = 0
  let lack = ''
  try {
    send({ type: 'input.text', text: 'hello', ...(!isAsked && !inSession && { payment_token: token }) }, { type: 'response.create' })
    for (;;) {
      const event = await inbox.next()
      switch (event.type) {
        case 'payment.required':
          send({ type: 'payment.submit', payment: ++tries > 1 || lack !== '' ? { scheme: 'declined' } : { scheme: 'token', token } })
          break
        case 'payment.error':
          lack = JSON.stringify(event)
          break
        case 'response.delta':
          text += event.delta.text ?? ''
          if (plan.stop === 'vanish') return undefined
          if (plan.stop === 'cancel') send({ type: 'response.cancel' })
          plan.stop = undefined
          break
        case 'refused':
          // The answer may end before it is cancelled, and a server that shuts down takes nothing more.
          if (event.error.code === 'not_found') break
          throw new Gone(JSON.stringify(event.error))
        case 'response.done':
          return told(by, plan, { text, outcome: 'done', payments: event.response.extensions?.uamp?.payments ?? [] })
        case 'response.cancelled':
          return told(by, plan, { text, outcome: 'cancelled' })
        case 'response.error':
          return told(by, plan, {
            text,
            outcome: event.error.code === 'payment_required' ? 'unpaid' : 'failed',
            error: `${lack} ${JSON.stringify(event.error)}`,
          })
      }
    }
  } finally {
    link.close()
  }
}

/** @param {string} url @param {(inbox: Inbox) => (message: any) => void} take */
async function socketAt(url, take) {
  const inbox = new Inbox()
  const socket = await openSocket(url, { message: take(inbox), closed: () => inbox.end() })
  return { inbox, socket }
}

/** @type {Spend} */
const realtime = async (plan) => {
  const { url, agent, token } = plan
  const { inbox, socket } = await socketAt(`${url}/v1/realtime?model=${agent}`, (box) => (message) => box.put(message))
  let text = ''
  let tries = 0
  let lack = ''
  try {
    const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hello' }] }
    socket.send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } })
    socket.send({ type: 'conversation.item.create', item })
    socket.send({ type: 'response.create' })
    for (;;) {
      const event = await inbox.next()
      const { type, response } = event
      if (type === 'payment.required') {
        socket.send({ type: 'payment.submit', payment: ++tries > 1 ? { scheme: 'declined' } : { scheme: 'token', token } })
      } else if (type === 'payment.error') lack = JSON.stringify(event)
      else if (type === 'response.output_text.delta') {
        text += event.delta
        if (plan.stop === 'vanish') return undefined
        if (plan.stop === 'cancel') socket.send({ type: 'response.cancel' })
        plan.stop = undefined
      } else if (type === 'response.done') {
        if (response.status === 'completed') return told('realtime', plan, { text, outcome: 'done' })
        if (response.status !== 'failed') return told('realtime', plan, { text, outcome: 'cancelled' })
        const error = `${lack} ${JSON.stringify(response.status_details)}`
        return told('realtime', plan, { text, outcome: error.includes('payment_required') ? 'unpaid' : 'failed', error })
      }
    }
  } finally {
    socket.close()
  }
}

/** @type {Spend} */
const omnia = async (plan) => {
  const { url, agent, token } = plan
  const { inbox, socket } = await socketAt(`${url}/omnia?agent=${agent}`, (box) => (message) => box.put(message))
  let session = ''
  let text = ''
  let tries = 0
  const say = (/** @type {object} */ more) => socket.send({ type: 'message', session_id: session, content: 'hello', ...more })
  try {
    for (;;) {
      const { type, session_id: id, content = '', error, ext } = await inbox.next()
      if (type === 'connected') {
        session = id
        say({})
      } else if (type === 'chunk') {
        text += content
        if (plan.stop === 'vanish') return undefined
        if (plan.stop === 'cancel') socket.send({ type: 'hangup', session_id: session })
      } else if (type === 'done') {
        const outcome = ext?.status === 'cancelled' ? 'cancelled' : 'done'
        return told('omnia', plan, { text: outcome === 'done' ? content : text, outcome, payments: ext?.uamp?.payments })
      } else if (type === 'error') {
        if (error.code === 'PAYMENT_REQUIRED' && ++tries === 1) say({ metadata: { payment_token: token } })
        else {
          const outcome = error.code === 'PAYMENT_REQUIRED' ? 'unpaid' : 'failed'
          return told('omnia', plan, { text, outcome, error: JSON.stringify(error) })
        }
      }
    }
  } finally {
    socket.close()
  }
}

/** @param {string} by @param {(url: string) => Promise<Rpc>} connect @returns {Spend} */
const acp = (by, connect) => async (plan) => {
  const { token, isAsked } = plan
  const rpc = await connect(`${place(plan)}/acp`)
  let text = ''
  try {
    await rpc.ask('initialize', { protocolVersion: 1, clientCapabilities: {} })
    const { sessionId } = await rpc.ask('session/new', { cwd: '/project', mcpServers: [] })
    /** @type {() => void} */
    let vanish = () => undefined
    const vanished = new Promise((resolve) => (vanish = () => resolve('vanished')))
    rpc.onMessage = ({ method, params }) => {
      if (method !== 'session/update' || params.update.sessionUpdate !== 'agent_message_chunk') return
      text += params.update.content.text
      if (plan.stop === 'cancel') void rpc.send({ method: 'session/cancel', params: { sessionId } }).catch(() => undefined)
      if (plan.stop === 'vanish') vanish()
      plan.stop = undefined
    }
    const prompt = { sessionId, prompt: [{ type: 'text', text: 'hello' }] }
    const pay = () => rpc.ask('session/prompt', { ...prompt, payment_token: token })
    const asked = !isAsked
      ? pay()
      : rpc.ask('session/prompt', prompt).catch((error) => (error.rpc?.code === -32402 ? pay() : Promise.reject(error)))
    const answer = await Promise.race([asked, vanished])
    if (answer === 'vanished') return void asked.catch(() => undefined)
    return told(by, plan, { text, outcome: answer.stopReason === 'end_turn' ? 'done' : 'cancelled' })
  } catch (thrown) {
    const { rpc: error } = /** @type {any} */ (thrown)
    if (!error) throw thrown
    return told(by, plan, { text, outcome: error.code === -32402 ? 'unpaid' : 'failed', error: JSON.stringify(error) })
  } finally {
    rpc.close()
  }
}

/** Everything that is paid in the conversation. @type {Readonly<Record<string, Spend>>} */
export const SOCKETS = {
  'events socket': events('events socket', overSocket),
  'events sse': events('events sse', overSse),
  realtime,
  omnia,
  'acp socket': acp('acp socket', Rpc.overSocket),
  'acp http': acp('acp http', Rpc.overHttp),
}
