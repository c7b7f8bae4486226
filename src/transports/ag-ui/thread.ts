import type { Principal } from '../../core/ports/access.ts'
import type { Gateway, InputEvent, Session, StoredTurn } from '../../core/ports/session.ts'
import type { KnownCall } from '../../core/ports/transport.ts'
import { outputMessages } from '../../core/output.ts'
import { isMedia } from '../../protocol/content.ts'
import { fingerprint } from '../../protocol/fingerprint.ts'
import { isRecord } from '../../protocol/json.ts'
import { itemsOf, textOf, type Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { idIn, responseOf } from './ids.ts'
import { toWireMessages } from '../../wire/ag-ui/messages.ts'
import type { WireMessage } from './schema.ts'

/** Ids of messages that a response is known to have been given. */
const INPUTS = 32
/** As many responses of a conversation are looked at. */
const TURNS = 512

export function aliasOf(agent: string, threadId: string) {
  return { protocol: 'ag-ui', id: `${agent} ${threadId}` }
}

/** The session of a thread: the one it opened, or one of another protocol whose id it has. */
export async function findThread(
  gateway: Gateway,
  { root, principal, access }: KnownCall,
  { agent, threadId }: { readonly agent: string; readonly threadId: string },
): Promise<Session | undefined> {
  const known = await gateway.attach(aliasOf(agent, threadId), principal)
  if (known || !threadId.startsWith('sess_')) return known
  const session = await gateway.attach(threadId, principal)
  const mayUse = session?.agent === agent || (root && session && access.authorize(principal, 'call', session.agent))
  return mayUse ? session : undefined
}

/** What a response remembers of its client's messages: the newest by their ids, and a fingerprint of all that the client then has. */
export function memoryOf(messages: readonly WireMessage[], snapshot: readonly WireMessage[] = messages) {
  return { inputs: messages.slice(-INPUTS).map(({ id }) => id), digest: digestOf(snapshot) }
}

/** What is new in the messages of a run; undefined: the client changed them, so all of them count and what is remembered does not. */
export function addedTo(head: StoredTurn | undefined, messages: readonly WireMessage[]): readonly WireMessage[] | undefined {
  if (!head) return messages
  const { inputs, digest } = rememberedIn(head.config)
  const last = messages.findLastIndex(({ id }) => inputs.has(id) || responseOf(id) !== undefined)
  const known = messages[last]
  // It leaves out what it knows to be here.
  if (!known) return messages
  const isAnswered = head.output.some(({ type }) => type !== 'tool_result')
  if (inputs.has(known.id) ? isAnswered : responseOf(known.id) !== head.id) return undefined
  const asked = messages.slice(0, messages.findLastIndex(({ id }) => inputs.has(id)) + 1)
  if (asked.length > 0 && digestOf(asked) !== digest) return undefined
  if (!isAsSaid(head, messages.slice(asked.length, last + 1))) return undefined
  const added = messages.slice(last + 1)
  return added.length === 0 ? undefined : added
}

/** Whether the client has the words of an answer as they were. Of an answer with sound it has a transcript. */
function isAsSaid({ id, output }: StoredTurn, messages: readonly WireMessage[]): boolean {
  const own = messages.filter((message) => responseOf(message.id) === id)
  const words = own.flatMap((message) => (message.role === 'assistant' && typeof message.content === 'string' ? [message.content] : []))
  return words.length === 0 || output.some(isMedia) || words.join('') === textOf(output)
}

/** What a response remembers of the run that asked for it. */
export function rememberedIn({ extensions }: SessionConfig): { runId: unknown; inputs: ReadonlySet<unknown>; digest: unknown } {
  const agUi = extensions?.['ag-ui']
  const { runId, inputs, digest } = isRecord(agUi) ? agUi : {}
  return { runId, inputs: new Set(Array.isArray(inputs) ? inputs : []), digest }
}

/** Of what is in the conversation: clients draw the rest as they like. */
function digestOf(messages: readonly WireMessage[]): string {
  const counted = messages.filter(({ role }) => role !== 'activity' && role !== 'reasoning')
  const fields = counted.map((message) => [
    message.id,
    message.role,
    'content' in message ? (message.content ?? '') : '',
    message.role === 'assistant' ? message.toolCalls?.map(({ id, function: made }) => [id, made.name, made.arguments]) : [],
  ])
  return fingerprint(JSON.stringify(fields))
}

/** The conversation up to a response. */
export async function historyOf(gateway: Gateway, last: string, principal: Principal): Promise<{ turn: string; messages: Message[] }[]> {
  const history: { turn: string; messages: Message[] }[] = []
  for (let id: string | null = last; id !== null && history.length < TURNS;) {
    const turn: StoredTurn | undefined = await gateway.turn(id, principal)
    if (!turn) break
    history.unshift({ turn: turn.id, messages: [...turn.input, ...outputMessages(turn.output)] })
    id = turn.parent
  }
  return history
}

/** The conversation for a client that joins it, its own messages last. */
export function snapshotOf(history: Awaited<ReturnType<typeof historyOf>>, messages: readonly WireMessage[]): WireMessage[] {
  const told = history.flatMap(({ turn, messages: of }) => {
    let place = 0
    return toWireMessages(of, () => idIn(turn, `h${place++}`))
  })
  const own = messages.map((message) => Object.fromEntries(Object.entries(message).filter(([, value]) => value !== null)))
  return [...told, ...own] as WireMessage[]
}

/** A message as what a client would say. */
export function inputEvents(message: Message, newId: () => string): InputEvent[] {
  return itemsOf(message).flatMap((item): InputEvent[] => {
    const event_id = newId()
    switch (item.type) {
      case 'text':
        return [{ type: 'input.text', event_id, text: item.text, ...(message.role !== 'tool' && { role: message.role }) }]
      case 'image':
        return [{ ...item, type: 'input.image', event_id }]
      case 'audio':
        return [{ type: 'input.audio', event_id, audio: item.audio, format: item.format ?? 'wav', is_final: true }]
      case 'video':
        return [{ ...item, type: 'input.video', event_id }]
      case 'file':
        return [{ ...item, type: 'input.file', event_id }]
      default:
        return []
    }
  })
}
