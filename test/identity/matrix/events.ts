/** Every type of UAMP events, over HTTP and over a socket. */
import type { ClientEvent } from '../../../src/protocol/events.ts'
import { decisionIn, decisionOf } from './forms.ts'
import { Line, type Heard } from './line.ts'
import { AGENT, decisionFor, type Asks, type Caller } from './rule.ts'
import type { Things, World } from './world.ts'

interface EventKind {
  readonly asks: Asks
  readonly fields: object
}

const CLIENT = { id: 'matrix', provider: 'test', modalities: ['text'], extensions: { uamp: { ack: true } } }

/** What each asks for, and an example. They are sent in this order, to one session. */
export const EVENTS = {
  'capabilities.query': { asks: 'read', fields: {} },
  'client.capabilities': { asks: 'read', fields: { capabilities: CLIENT } },
  ping: { asks: 'read', fields: {} },
  'session.update': { asks: 'call', fields: { session: { instructions: 'Be brief' } } },
  'input.typing': { asks: 'call', fields: { is_typing: true } },
  'input.text': { asks: 'call', fields: { text: 'Hello' } },
  'input.image': { asks: 'call', fields: { image: 'iVBORw0KGgo=', format: 'png' } },
  'input.audio': { asks: 'call', fields: { audio: 'AAAAAAAA', format: 'pcm16', is_final: true } },
  'input.video': { asks: 'call', fields: { video: 'AAAA', format: 'mp4' } },
  'input.file': { asks: 'call', fields: { file: 'YQ==', filename: 'a.txt', mime_type: 'text/plain' } },
  'response.create': { asks: 'call', fields: {} },
  'response.cancel': { asks: 'cancel', fields: {} },
  'tool.result': { asks: 'call', fields: { call_id: 'none', result: '1' } },
  'x.approval.response': { asks: 'call', fields: { approval_id: 'none', approved: true } },
  'payment.submit': { asks: 'call', fields: { payment: { scheme: 'token', token: 't' } } },
  'message.read': { asks: 'call', fields: { chat_id: 'c' } },
  'voice.invite': { asks: 'call', fields: {} },
  'voice.accept': { asks: 'call', fields: {} },
  'voice.decline': { asks: 'call', fields: {} },
  'voice.end': { asks: 'call', fields: {} },
  'session.end': { asks: 'cancel', fields: {} },
  'session.create': { asks: 'call', fields: { agent: AGENT } },
} as const satisfies Record<ClientEvent['type'], EventKind>

type Type = ClientEvent['type']
export const types = Object.keys(EVENTS) as Type[]

/** What is sent of a type. */
function eventOf(type: Type, session: string): { readonly event_id: string; readonly type: Type } {
  const named = type === 'session.create' ? {} : { session_id: session }
  return { type, event_id: crypto.randomUUID(), ...named, ...EVENTS[type].fields }
}

/** A `session.create` that goes on with a session. */
export function resume(session: string): { readonly event_id: string } {
  const extensions = { uamp: { resume: { session_id: session, after: 0 } } }
  const create = { type: 'session.create', uamp_version: '1.0', session: { modalities: ['text'], extensions }, client_capabilities: CLIENT }
  return { event_id: crypto.randomUUID(), ...create }
}

type Decisions = Partial<Record<Type | 'resume', string>>

export type Send = (world: World, things: Things, caller: Caller) => Promise<Decisions>

/** Not one for all: some end it. */
function sessionFor(things: Things, caller: Caller): Promise<string> {
  const mayChange = decisionFor({ asks: 'cancel', owned: true }, caller) === 'admitted'
  return mayChange ? things.fresh('session') : things.shared('session')
}

export const overHttp: Send = async (world, things, caller) => {
  const session = await sessionFor(things, caller)
  const send = async (body: object, headers = {}) => {
    const answered = await world.ask(caller, { method: 'POST', path: '/events', body, headers })
    return letIn(decisionOf('uamp', answered), answered.text)
  }
  const decisions: Decisions = { resume: await send(resume(session)) }
  for (const type of types) {
    decisions[type] = await send(eventOf(type, session), type === 'session.create' ? {} : { 'x-session-id': session })
  }
  return decisions
}

/** Over one of the sockets, to a session that the caller goes on with, if they may. */
export function overSocket(path: string): Send {
  return async (world, things, caller) => {
    const session = await sessionFor(things, caller)
    const line = await Line.open(world.url, { path, headers: world.headersOf(caller) })
    if (!(line instanceof Line)) {
      const refused = decisionOf('uamp', line)
      return Object.fromEntries(['resume', ...types].map((type) => [type, refused]))
    }
    const send = async (event: { readonly event_id: string; readonly type?: Type }) => {
      line.send(event)
      const answer = await line.next((message) => answers(message, event))
      return letIn(decisionIn('uamp', answer), JSON.stringify(answer))
    }
    try {
      const decisions: Decisions = { resume: await send(resume(session)) }
      for (const type of types) decisions[type] = await send(eventOf(type, session))
      return decisions
    } finally {
      line.close()
    }
  }
}

function answers(message: Heard, { event_id: id, type }: { readonly event_id: string; readonly type?: Type }): boolean {
  if (message['error']?.details?.event_id === id || message['extensions']?.uamp?.request === id) return true
  if (message['type'] === 'x.ack') return message['event_ids'].includes(id)
  return message['type'] === (type === 'ping' ? 'pong' : type === 'session.end' ? type : undefined)
}

/** An event that is refused for what it says, such as an answer that nobody asked for, was let in. */
function letIn(decision: string, text: string): string {
  const isOther = decision.startsWith('error: ') || (decision === 'not found' && !text.includes('There is no session'))
  return isOther ? 'admitted' : decision
}
