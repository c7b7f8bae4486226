import { responseConfig } from '../../core/overrides.ts'
import type { Reader, Session, StoredTurn } from '../../core/ports/session.ts'
import type { Host, KnownCall } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, EventOf } from '../../protocol/events.ts'
import type { Payment } from '../../protocol/payment.ts'
import { invalid } from '../../wire/openai/parse.ts'
import { answersTo, noInterrupt, resumed, toolResult } from './interrupts.ts'
import { paymentId } from './ids.ts'
import { noCall, toMessages } from './messages.ts'
import { ENDS } from './run.ts'
import { settingsOf, type Asked } from './request.ts'
import { planOf, type RunRecord, type Runs } from './runs.ts'
import type { WireMessage } from './schema.ts'
import { addedTo, aliasOf, findThread, historyOf, inputEvents, snapshotOf } from './thread.ts'
import type { RunPlan } from './encoder.ts'

/** Ids of messages that a response is known to have been given. */
const INPUTS = 32

/** A run that has begun, and a reader that stands before its first event. */
export interface Started {
  readonly session: Session
  readonly reader: Reader
  readonly plan: RunPlan
  readonly snapshot: readonly object[] | undefined
}

/** What begins a run. */
interface Beginning {
  readonly session: Session
  readonly sent: readonly ClientEvent[]
  readonly snapshot?: readonly object[] | undefined
  /** The response goes on; it is not a new one. */
  readonly goesOn?: { readonly head: StoredTurn; readonly resumes: string }
}

export class Starter {
  readonly #host: Host
  readonly #runs: Runs
  readonly #call: KnownCall
  readonly #asked: Asked

  constructor(host: Host, runs: Runs, { call, asked }: { readonly call: KnownCall; readonly asked: Asked }) {
    this.#host = host
    this.#runs = runs
    this.#call = call
    this.#asked = asked
  }

  async start(): Promise<Started> {
    const { gateway } = this.#host
    const { agent } = this.#call
    if (agent === undefined || !this.#host.agents.get(agent)) {
      throw new UampError('agent_offline', 'Say which agent: its address is /agents/{name}/ag-ui', {
        details: { agents: this.#host.agents.names() },
      })
    }
    const session = await findThread(gateway, this.#call, { agent, threadId: this.#asked.threadId })
    return this.#begin(session ? await this.#goOn(session) : await this.#open(agent))
  }

  /** The run goes on once it is paid for. */
  async pay({ session, plan }: Started, payment: Payment): Promise<Started> {
    const submit: ClientEvent = { type: 'payment.submit', event_id: this.#host.newId(), payment }
    const head = session.duplex ? await this.#host.gateway.turn(plan.response, this.#call.principal) : undefined
    if (!head) return this.#begin({ session, sent: [submit, this.#create(session)] })
    return this.#begin({ session, sent: [submit], goesOn: { head, resumes: paymentId(head.id) } })
  }

  async #open(agent: string): Promise<Beginning> {
    const { threadId, messages, resume } = this.#asked
    const { principal } = this.#call
    if (resume[0]) throw noInterrupt(resume[0])
    const session = await this.#host.gateway.open({
      transport: 'ag-ui',
      agent,
      principal,
      config: { modalities: ['text'] },
      duplex: false,
      persist: true,
      // Each run says for itself what its client's leaving means.
      onDetach: 'continue',
      alias: aliasOf(agent, threadId),
      input: toMessages(messages),
    })
    return { session, sent: [this.#create(session)] }
  }

  /** The next run of a thread: the answers that it waits for, or what is new in the conversation. */
  async #goOn(session: Session): Promise<Beginning> {
    const { gateway, newId } = this.#host
    const { resume, messages, payment } = this.#asked
    const head = session.turn === null ? undefined : await gateway.turn(session.turn, this.#call.principal)
    const added = addedTo(head, messages)
    if (session.duplex && head?.status === 'open') return this.#answerRunning(session, head, added ?? [])
    if (!session.waiting && resume[0]) throw noInterrupt(resume[0])
    const answers = session.waiting && answersTo(session.waiting, { resume, messages: added ?? messages, payment, newId })
    const isMore = (added ?? []).some(({ role }) => role !== 'tool' && role !== 'activity' && role !== 'reasoning')
    if (answers && !isMore) return { session, sent: [...answers, this.#create(session)] }
    if (answers && resume.length > 0) throw invalid('Resume in a run of its own, and say more in the next', 'messages', 'invalid_value')
    return this.#say(session, head, added)
  }

  async #say(session: Session, head: StoredTurn | undefined, added: readonly WireMessage[] | undefined): Promise<Beginning> {
    const { gateway, newId } = this.#host
    const { messages, threadId, parentRunId } = this.#asked
    const { principal } = this.#call
    const create = this.#create(session)
    const parent = parentRunId === undefined ? undefined : await this.#runs.find(principal, parentRunId)
    if (head && parent?.threadId === threadId && parent.response !== head.id) {
      // Another branch, from an earlier run.
      const before = (await historyOf(gateway, parent.response, principal)).flatMap((turn) => turn.messages)
      const known = messages.findLastIndex(({ id }) => id.startsWith(parent.response))
      return { session, sent: [whole([...before, ...toMessages(messages.slice(known + 1))], newId()), create] }
    }
    if (!added?.every(isPlain)) return { session, sent: [whole(toMessages(messages), newId()), create] }
    const isStranger = head !== undefined && added.length === messages.length
    const snapshot = isStranger ? snapshotOf(await historyOf(gateway, head.id, principal), messages) : undefined
    return { session, sent: [...toMessages(added).flatMap((message) => inputEvents(message, newId)), create], snapshot }
  }

  /** On a session of another protocol the response still runs, and may wait for this. */
  async #answerRunning(session: Session, head: StoredTurn, added: readonly WireMessage[]): Promise<Beginning> {
    const { newId } = this.#host
    const pay = paymentId(head.id)
    const results = added.flatMap((message) => (message.role === 'tool' ? [message] : []))
    const sent: ClientEvent[] = [
      ...this.#asked.resume.map((entry) => resumed(entry, entry.interruptId === pay ? 'payment.required' : 'x.approval.request', newId)),
      ...results.map((message) => toolResult(message, newId)),
    ]
    const resumes = results.at(-1)?.toolCallId ?? this.#asked.resume.at(-1)?.interruptId
    if (resumes === undefined) return { session, sent: [this.#create(session)] }
    return { session, sent, goesOn: { head, resumes } }
  }

  async #begin({ session, sent, snapshot, goesOn }: Beginning): Promise<Started> {
    const { threadId, runId, parentRunId, legacy, detach } = this.#asked
    const { signal, principal } = this.#call
    const after = goesOn?.head.after ?? session.head
    const reader = session.read({ after, extensions: 'all', signal })
    // Reads to the end what nobody else may be reading, so that it is not stopped for want of a reader.
    const keeper = detach ? session.read({ after, extensions: 'all' }) : undefined
    try {
      const accepted = sent.map((event) => session.send(event))
      const response = session.turn ?? ''
      const ids = { threadId, runId, ...(parentRunId !== undefined && { parentRunId }), session: session.id, response }
      const resumes = goesOn && { resumes: goesOn.resumes }
      const record: RunRecord = { ...ids, agent: session.agent, after, legacy, duplex: session.duplex, ...resumes }
      await Promise.all([...accepted, this.#runs.set(principal, record)])
      if (keeper) void this.#keep(session, keeper)
      const create = sent.find((event) => event.type === 'response.create')
      const config = (create && responseConfig(session.config, create)) ?? goesOn?.head.config ?? session.config
      return { session, reader, snapshot, plan: planOf(record, { config, given: sent.filter((event) => event.type === 'tool.result') }) }
    } catch (thrown) {
      reader.close()
      keeper?.close()
      void session.release().catch(() => undefined)
      throw unasked(thrown)
    }
  }

  async #keep(session: Session, keeper: Reader): Promise<void> {
    try {
      for await (const batch of keeper) if (batch.has(ENDS)) break
      await session.release()
    } catch (error) {
      this.#host.log('error', 'A reader failed', { session: session.id, error })
    }
  }

  #create(session: Session): EventOf<'response.create'> {
    const inputs = this.#asked.messages.slice(-INPUTS).map(({ id }) => id)
    const { tools, ...settings } = settingsOf(this.#asked, session.config, inputs)
    // A session of another protocol has tools of its own.
    const offered = tools.length > 0 || session.config.tools === undefined ? { tools } : {}
    return { type: 'response.create', event_id: this.#host.newId(), response: { ...settings, ...offered } }
  }
}

/** What can be said to a session as it is. */
function isPlain(message: WireMessage): boolean {
  if (message.role === 'assistant') return !message.toolCalls?.length
  return message.role !== 'tool' && message.role !== 'reasoning'
}

/** The conversation as its client has it. */
function whole(messages: EventOf<'input.text'>['messages'], event_id: string): ClientEvent {
  return { type: 'input.text', event_id, text: '', messages }
}

/** The answer to a question that nobody asks, or that was answered by another. */
function unasked(thrown: unknown): unknown {
  const error = UampError.from(thrown)
  const id = error.code === 'not_found' ? error.details?.['id'] : undefined
  return typeof id === 'string' ? noCall(id, 'messages') : thrown
}
