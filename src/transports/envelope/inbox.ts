import { base64Url } from '../../protocol/base64.ts'
import { principalKey } from '../../core/basics/principal.ts'
import type { TurnKeeper } from '../../core/ports/keeper.ts'
import type { Session, StoredResponse } from '../../core/ports/session.ts'
import type { Host, KnownCall } from '../../core/ports/transport.ts'
import { envelopeError } from '../../envelope/codes.ts'
import { messageKey, type Intent } from '../../envelope/schema.ts'
import type { Json } from '../../protocol/json.ts'
import { isRecord, jsonIn } from '../../protocol/json.ts'
import type { Admitted } from './admission.ts'
import { inputOf, textOf } from './inputs.ts'
import { answerTo, type Proposals } from './proposals.ts'
import { streamAlias, type MessageRecord, type MessageRecords, type StreamNote } from './records.ts'
import type { EnvelopeSettings } from './settings.ts'
import { windowOf, type Windows } from './windows.ts'

/** The name by which recovery knows the response to a message. */
const KEEPER = 'envelope'

/** The connection's own streams begin with a slash, and a dot or two in a path lead elsewhere. */
const UNFIT = /^(?:\/.*|\.\.?)$/

/** What a sender is told: its message is taken, and where the answer to it comes. */
export interface Accepted {
  readonly stream: string | undefined
}

export interface InboxOptions {
  readonly host: Host
  readonly records: MessageRecords
  readonly windows: Windows
  readonly proposals: Proposals
  readonly settings: EnvelopeSettings
}

type Call = Pick<KnownCall, 'trace' | 'payment'>

type Handler = (inbox: Inbox, admitted: Admitted, call: Call) => Promise<MessageRecord>

/** What each intent does (UAMP envelope §4.1). Each stores the record of its message before it is done. */
const INTENTS = {
  ask: (inbox, admitted, call) => inbox.ask(admitted, call),
  inform: (inbox, admitted, call) => inbox.inform(admitted, call),
  cancel: (inbox, admitted) => inbox.cancel(admitted),
  progress: (inbox, admitted) => inbox.acknowledge(admitted),
  confirm: (inbox, admitted) => inbox.answer(admitted, true),
  deny: (inbox, admitted) => inbox.answer(admitted, false),
  error: (inbox, admitted) => inbox.answer(admitted, false),
  propose: notYet,
  subscribe: (inbox, admitted) => inbox.subscribe(admitted),
  notify: (inbox, admitted, call) => inbox.inform(admitted, call),
} satisfies Record<Intent, Handler>

/** The intents that are served, as the manifest lists them. */
export const SERVED_INTENTS = (Object.keys(INTENTS) as Intent[]).filter((intent) => INTENTS[intent] !== notYet)

function notYet(_: Inbox, { envelope }: Admitted): Promise<never> {
  return Promise.reject(envelopeError('5.01', `The intent "${envelope.intent}" is not served here`, 'intent'))
}

/** Takes messages, each once. */
export class Inbox {
  readonly #options: InboxOptions
  /** Messages that are being taken, by the keys of their records. */
  readonly #taking = new Map<string, { readonly hash: string; readonly record: Promise<MessageRecord> }>()

  /** Streams that are being opened, by owner and name. */
  readonly #opening = new Set<string>()

  constructor(options: InboxOptions) {
    this.#options = options
    // Everything that a message leaves is written with its response.
    options.host.gateway.recoverWith(KEEPER, () => Promise.resolve(undefined))
  }

  /** The same message again has the same answer, and no other effect; its id with other content is refused. */
  async take(admitted: Admitted, call: Call): Promise<Accepted> {
    const { envelope, hash, principal } = admitted
    const key = this.#options.records.keyOf(principal, envelope.id)
    const taking = this.#taking.get(key)
    if (taking && taking.hash !== hash) throw replayed()
    if (taking) return accepted(await taking.record)
    const record = this.#once(key, admitted, call)
    this.#taking.set(key, { hash, record })
    return accepted(await record.finally(() => this.#taking.delete(key)))
  }

  async #once(key: string, admitted: Admitted, call: Call): Promise<MessageRecord> {
    const { records } = this.#options
    const before = await records.get(key)
    const hash = before?.hash ?? (await records.hashTaken(admitted.principal, admitted.envelope.id))
    if (hash !== undefined && hash !== admitted.hash) throw replayed()
    if (before) return before
    if (hash !== undefined) throw envelopeError('4.10', 'The message was taken before, and its conversation was removed', 'removed')
    return INTENTS[admitted.envelope.intent](this, admitted, call)
  }

  /** Starts a turn. Of two messages that name one stream at the same time, the first has it. */
  async ask(admitted: Admitted, call: Call): Promise<MessageRecord> {
    const { envelope, principal } = admitted
    const stream = envelope.stream_id ?? `str-${base64Url(crypto.getRandomValues(new Uint8Array(16)))}`
    if (UNFIT.test(stream)) throw envelopeError('4.00', `A stream cannot have the name "${stream}"`, 'stream_id')
    const name = `${principalKey(principal)} ${stream}`
    if (this.#opening.has(name)) throw isThere(stream)
    this.#opening.add(name)
    try {
      return await this.#open(stream, admitted, call)
    } finally {
      this.#opening.delete(name)
    }
  }

  async #open(stream: string, admitted: Admitted, { trace, payment }: Call): Promise<MessageRecord> {
    const { host, records, settings } = this.#options
    const { envelope, principal } = admitted
    if (await host.gateway.response(streamAlias(stream), principal)) throw isThere(stream)
    const input = await inputOf(envelope.body, settings)
    const session = await this.#conversation(admitted, trace)
    const key = records.keyOf(principal, envelope.id)
    const base = { ...this.#recordOf(admitted), session: session.id, stream }
    let record: MessageRecord = base
    const written = () => [records.operation(key, record, { tenant: principal.tenant, ifVersion: 0 }), records.taken(principal, record)]
    const keeper: TurnKeeper = {
      name: KEEPER,
      opened: ({ id }) => {
        record = { ...base, response: id }
        return written
      },
      closed: (_, __, isFirst) => (isFirst ? written() : []),
    }
    const note: StreamNote = { message: envelope.id, stream, window: windowOf(envelope.delta_window), from: envelope.from }
    try {
      await session.say([{ ...input, event_id: host.newId() }], this.#create(admitted), {
        alias: streamAlias(stream),
        note: note as unknown as Json,
        keeper,
        principal,
        trace,
        payment,
      })
    } finally {
      this.#letGo(session)
    }
    return record
  }

  /** Adds to a conversation, and asks for nothing. Whoever asks later in it is answered with that in mind. */
  async inform(admitted: Admitted, { trace }: Call): Promise<MessageRecord> {
    const { settings } = this.#options
    const { envelope, principal } = admitted
    const input = await inputOf(envelope.body, settings)
    const session = await this.#conversation(admitted, trace)
    try {
      await session.send({ ...input, event_id: messageKey(envelope.id) }, { principal, trace })
      return await this.#write(admitted, { session: session.id })
    } finally {
      this.#letGo(session)
    }
  }

  /** Follows the stream of a message that was sent before, maybe on another connection. */
  async subscribe(admitted: Admitted): Promise<MessageRecord> {
    const found = await this.#named(admitted)
    const { stream } = found.note as unknown as StreamNote
    // Not written down: it may be sent again, and then means the same.
    return { ...this.#recordOf(admitted), session: found.session, stream }
  }

  async cancel(admitted: Admitted): Promise<MessageRecord> {
    const { gateway, newId } = this.#options.host
    const { principal } = admitted
    const found = await this.#named(admitted)
    if (found.status === 'open') {
      const session = await gateway.attach(found.session, principal, 'cancel')
      // It may have ended meanwhile, which is what a cancel is for.
      await session?.send({ type: 'response.cancel', event_id: newId(), response_id: found.id }).catch(() => undefined)
      if (session) this.#letGo(session)
    }
    return this.#write(admitted, { session: found.session })
  }

  /** Acknowledges frames of a stream. */
  async acknowledge(admitted: Admitted): Promise<MessageRecord> {
    const { settings } = this.#options
    const { envelope, principal } = admitted
    const said = jsonIn(await textOf(envelope.body, settings))
    const found = await this.#named(admitted)
    const { stream } = found.note as unknown as StreamNote
    this.acknowledgeStream(principalKey(principal), stream, isRecord(said) ? said['ack'] : undefined)
    // Not written down: it may be sent again, and then means the same.
    return { ...this.#recordOf(admitted), session: found.session }
  }

  acknowledgeStream(owner: string, stream: string, ack: unknown): void {
    if (typeof ack !== 'number' || !Number.isSafeInteger(ack) || ack < 0) {
      throw envelopeError('4.00', '"ack" must be the number of a frame', 'ack')
    }
    this.#options.windows.of(owner, stream).acknowledge(ack)
  }

  /** Answers a question of the agent's. */
  async answer(admitted: Admitted, confirmed: boolean): Promise<MessageRecord> {
    const { host, proposals, settings } = this.#options
    const { envelope, principal } = admitted
    const { reply_to: of, id, body } = envelope
    if (of === undefined) throw envelopeError('4.00', `A "${envelope.intent}" must name what it answers in reply_to`, 'reply_to')
    const proposal = proposals.find(principalKey(principal), of)
    const response = proposal && (await host.gateway.response(proposal.response, principal))
    const session = response && (await host.gateway.attach(response.session, principal))
    if (!proposal || !session) throw envelopeError('4.04', 'There is no proposal of that id', 'reply_to')
    try {
      const text = await textOf(body, settings)
      await session.send(answerTo(proposal, { confirmed, text, eventId: messageKey(id) }), { principal })
      return await this.#write(admitted, { session: session.id })
    } finally {
      this.#letGo(session)
    }
  }

  /** The response that a message names by its stream, or as what it answers. */
  async #named({ envelope: { stream_id, reply_to }, principal }: Admitted): Promise<StoredResponse> {
    const { host, records } = this.#options
    const asked = reply_to === undefined ? undefined : await records.get(records.keyOf(principal, reply_to))
    const name = stream_id === undefined ? asked?.response : streamAlias(stream_id)
    const found = name === undefined ? undefined : await host.gateway.response(name, principal)
    if (!found) throw envelopeError('4.04', 'There is no stream, and no message with an answer, of that id', 'reply_to')
    return found
  }

  /** The conversation of a message that this one refers to, or a new one. */
  async #conversation({ envelope, agent, principal }: Admitted, trace: Call['trace']): Promise<Session> {
    const { host, records } = this.#options
    const { context = [], reply_to } = envelope
    const ids = [...(reply_to === undefined ? [] : [reply_to]), ...context.map(({ id }) => id)]
    for (const id of ids) {
      const record = await records.get(records.keyOf(principal, id))
      if (!record) continue
      const named = context.find((each) => messageKey(each.id) === messageKey(id))
      if (named && named.hash !== `sha256:${record.hash}`) {
        throw envelopeError('4.22', 'The context names a message by a hash that is not its own', 'context')
      }
      const found =
        record.session === undefined || record.agent !== agent ? undefined : await host.gateway.attach(record.session, principal)
      if (found) return found
    }
    return host.gateway.open({
      transport: 'envelope',
      agent,
      principal,
      trace,
      config: { modalities: ['text'] },
      duplex: true,
      persist: true,
      onDetach: 'finish',
    })
  }

  #create({ envelope: { id, from, intent, reply_to, context, ext } }: Admitted) {
    const envelope = { id, from, intent, ...(reply_to !== undefined && { reply_to }), ...(context && { context }), ...(ext && { ext }) }
    return { type: 'response.create' as const, event_id: messageKey(id), extensions: { envelope } }
  }

  #recordOf({ envelope: { id, from, intent }, hash, agent }: Admitted): MessageRecord {
    return { id, from, intent, hash, agent, at: this.#options.host.now() }
  }

  async #write(admitted: Admitted, more: Pick<MessageRecord, 'session'>): Promise<MessageRecord> {
    const { records } = this.#options
    const { envelope, principal } = admitted
    const record = { ...this.#recordOf(admitted), ...more }
    const key = records.keyOf(principal, envelope.id)
    await records.write(records.operation(key, record, { tenant: principal.tenant }), records.taken(principal, record))
    return record
  }

  #letGo(session: Session): void {
    session
      .release()
      .catch((error: unknown) => this.#options.host.log('error', 'A session could not be let go', { session: session.id, error }))
  }
}

function isThere(stream: string): Error {
  return envelopeError('4.22', `The stream "${stream}" is there already`, 'stream_id')
}

function accepted({ stream }: MessageRecord): Accepted {
  return { stream }
}

function replayed(): Error {
  return envelopeError('4.22', 'A message of this id was taken before, and had other content', 'replayed')
}
