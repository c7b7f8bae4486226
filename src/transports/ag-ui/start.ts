import { withHops } from '../../core/basics/hops.ts'
import { responseConfig } from '../../core/edge/asked.ts'
import type { Hold, InputEvent, Reader, Session, StoredResponse } from '../../core/ports/session.ts'
import type { Trace } from '../../core/ports/trace.ts'
import type { Host, KnownCall } from '../../core/ports/transport.ts'
import { hidden } from '../../core/secrets/sealing.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, EventOf } from '../../protocol/events.ts'
import type { Json } from '../../protocol/json.ts'
import type { Payment } from '../../protocol/payment.ts'
import { answersTo, formed, formOf, noInterrupt, resumed, toolResult } from './interrupts.ts'
import { paymentId } from './ids.ts'
import { noCall, toMessages } from './messages.ts'
import { settingsOf, type Asked } from './request.ts'
import { nameOf, planOf, type RunNote, type RunRecord, type Runs } from './runs.ts'
import type { ResumeEntry, WireMessage } from './schema.ts'
import { isNoState, stateAfter } from './state.ts'
import { addedTo, aliasOf, findThread, historyOf, inputEvents, memoryOf, rememberedIn, snapshotsOf } from './thread.ts'
import type { RunPlan } from './encoder.ts'

/** How long a run waits for the end of the one before: a page may stop one and start the next before the server knows of the stop. */
const STOPPING_MS = 2_000
/** How often it looks whether that has ended. */
const LOOK_MS = 5

/** A run that has begun, with a reader whose cursor is before its first event. */
export interface Started {
  readonly session: Session
  readonly reader: Reader
  readonly plan: RunPlan
  readonly snapshots: readonly (readonly object[])[]
  /** The run is the first of its thread. */
  readonly fresh: boolean
  /** Counts the conversation that was read for the snapshots. */
  readonly hold?: Hold | undefined
}

/** What a run begins with. */
interface Beginning {
  readonly session: Session
  /** Answers to the questions that the thread waits for. */
  readonly answers?: readonly ClientEvent[]
  readonly inputs?: readonly InputEvent[]
  readonly create?: EventOf<'response.create'>
  /** The client brings only new messages, and is shown the conversation up to this response. */
  readonly joins?: string | undefined
  readonly snapshots?: readonly (readonly object[])[] | undefined
  readonly hold?: Hold | undefined
  readonly fresh?: boolean
  /** The run continues a running response instead of asking for a new one. */
  readonly goesOn?: { readonly head: StoredResponse; readonly resumes: string }
}

export class Starter {
  readonly #host: Host
  readonly #runs: Runs
  readonly #call: KnownCall
  readonly #asked: Asked
  readonly #trace: Trace
  #isGone = false
  /** The state that the thread has, if its client brings none. */
  #state: unknown
  /** A client of another protocol may leave a response open for long. */
  #mayWait = true

  constructor(host: Host, runs: Runs, { call, asked }: { readonly call: KnownCall; readonly asked: Asked }) {
    this.#host = host
    this.#runs = runs
    this.#call = call
    this.#asked = asked
    this.#state = asked.state
    this.#trace = withHops(call.trace, asked.hops)
  }

  /** A run that is refused because another one goes on tries again until its time is over: several may have waited for one end. */
  async start(): Promise<Started> {
    const until = this.#host.monotonic() + STOPPING_MS
    this.#call.whenGone(() => (this.#isGone = true))
    for (;;) {
      try {
        return await this.#start(until)
      } catch (thrown) {
        const isBusy = thrown instanceof UampError && thrown.code === 'response_in_progress'
        if (!isBusy || !this.#mayWait || this.#host.monotonic() >= until) throw thrown
        // The same run sent again must not wait for itself.
        if (await this.#runs.find(this.#call.principal, this.#asked.runId)) throw thrown
      }
    }
  }

  async #start(until: number): Promise<Started> {
    const { gateway } = this.#host
    const { agent } = this.#call
    if (agent === undefined || !this.#host.agents.get(agent)) {
      throw new UampError('agent_offline', 'Say which agent: its address is /agents/{name}/ag-ui', {
        details: { agents: this.#host.agents.names() },
      })
    }
    const session = await findThread(gateway, this.#call, { agent, threadId: this.#asked.threadId, action: 'call' })
    if (!session) return this.#begin(await this.#open(agent))
    this.#mayWait = !session.duplex
    const beginning = await this.#goOn(session, until).catch((thrown: unknown) => {
      letGo(session)
      throw thrown
    })
    return this.#begin(beginning)
  }

  /** Continues a run with its payment. */
  async pay({ session, plan }: Started, payment: Payment): Promise<Started> {
    const submit: ClientEvent = { type: 'payment.submit', event_id: this.#host.newId(), payment }
    const head = session.duplex ? await this.#host.gateway.response(plan.response, this.#call.principal) : undefined
    if (!head) return this.#begin({ session, answers: [submit], create: this.#create(session) })
    return this.#begin({ session, answers: [submit], goesOn: { head, resumes: paymentId(head.id) } })
  }

  async #open(agent: string): Promise<Beginning> {
    const { threadId, messages, resume } = this.#asked
    const { principal } = this.#call
    if (resume[0]) throw noInterrupt(resume[0])
    const session = await this.#host.gateway.open({
      transport: 'ag-ui',
      agent,
      principal,
      trace: this.#trace,
      config: { modalities: ['text'] },
      duplex: false,
      persist: true,
      // Each run decides for itself what happens when its client leaves.
      onDetach: 'continue',
      alias: aliasOf(agent, threadId),
      input: toMessages(messages),
    })
    return { session, create: this.#create(session), fresh: true }
  }

  /** The next run of a thread brings the answers that the thread waits for, or new messages. */
  async #goOn(session: Session, until: number): Promise<Beginning> {
    const { resume, messages, join, state } = this.#asked
    const head = await this.#newest(session, until)
    const added = addedTo(head, messages, join)
    if (head && (state === undefined || (isNoState(state) && added?.length === messages.length)))
      this.#state = await stateAfter(session, head)
    if (session.duplex && head?.status === 'open') return this.#answerRunning(session, head, added ?? [])
    const { waiting } = session
    const first = resume[0]
    if (!waiting && first) throw noInterrupt(first)
    if (!waiting || this.#turnsAway(added)) return this.#say(session, head)
    const answers = answersTo(waiting, { ...this.#asked, messages: added ?? messages, newId: this.#host.newId })
    if (!answers) return this.#say(session, head)
    const more = added?.find(isSaid)
    if (more && resume.every(({ status }) => status === 'cancelled')) return this.#say(session, head)
    // Other new messages belong to the next run, which brings them again.
    if (added)
      return { session, answers, create: this.#create(session, memoryOf(more ? messages.slice(0, messages.indexOf(more)) : messages)) }
    if (waiting.questions.every(({ type }) => type === 'tool.call')) return this.#say(session, head)
    // A decision is not part of the messages, so it counts now; changed messages count in the next run.
    return { session, answers, create: this.#create(session, { changed: true }) }
  }

  /** Clients of 0.0.x may know no `resume`. What they say instead is answered, and what was asked is not done. */
  #turnsAway(added: readonly WireMessage[] | undefined): boolean {
    const { legacy, resume, payment } = this.#asked
    return legacy && resume.length === 0 && payment === undefined && (added === undefined || added.some(isSaid))
  }

  /** The newest response. A running one gets time to stop. */
  async #newest(session: Session, until: number): Promise<StoredResponse | undefined> {
    const { gateway, monotonic } = this.#host
    const newest = async () => (session.lastResponse === null ? undefined : gateway.response(session.lastResponse, this.#call.principal))
    let head = await newest()
    while (session.responding && this.#mayWait && !this.#isGone && monotonic() < until) {
      if (head && rememberedIn(head.config).runId === this.#asked.runId) return head
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
      // A response may be so new that it is not stored yet. A record may be large, so it is not read again without need.
      if (head?.id !== session.lastResponse) head = await newest()
    }
    return head?.status === 'open' ? newest() : head
  }

  async #say(session: Session, head: StoredResponse | undefined): Promise<Beginning> {
    const { gateway, newId } = this.#host
    const { messages, threadId, parentRunId, join } = this.#asked
    const { principal } = this.#call
    const parent = parentRunId === undefined ? undefined : await this.#runs.find(principal, parentRunId)
    const isNamed = parent?.threadId === threadId
    const branches = head !== undefined && isNamed && parent.response !== head.id
    const base = branches ? await gateway.response(parent.response, principal) : head
    const added = addedTo(base, messages, join || isNamed)
    const isNew = added !== undefined && (added.length > 0 || messages.length === 0)
    const joins = base && isNew && added.length === messages.length ? base.id : undefined
    const reads = isNew && (branches || joins !== undefined) ? base : undefined
    const hold = reads && gateway.hold(principal, 0)
    const history = reads && hold ? await held(hold, historyOf(gateway, reads.id, { principal, hold })) : []
    const snapshots = joins === undefined ? undefined : snapshotsOf(history, messages)
    const begins = { session, joins, snapshots, hold, create: this.#create(session, memoryOf(messages, snapshots?.[1])) }
    if (!branches && isNew && added.every(isPlain)) {
      return { ...begins, inputs: toMessages(added).flatMap((message) => inputEvents(message, newId)) }
    }
    const before = history.flatMap((turn) => turn.messages)
    const whole = [...before, ...toMessages(isNew && before.length > 0 ? added : messages, before)]
    return { ...begins, inputs: [{ type: 'input.text', event_id: newId(), text: '', messages: whole }] }
  }

  /** On a session of another protocol the response may still run, and wait for these answers. */
  #answerRunning(session: Session, head: StoredResponse, added: readonly WireMessage[]): Beginning {
    const { newId } = this.#host
    const pay = paymentId(head.id)
    const answerTo = (entry: ResumeEntry) =>
      session.asking.some(({ id, extensions }) => id === entry.interruptId && formOf({ extensions }))
        ? formed(entry, newId)
        : resumed(entry, entry.interruptId === pay ? 'payment.required' : 'x.approval.request', newId)
    const results = added.flatMap((message) => (message.role === 'tool' ? [message] : []))
    const answers: ClientEvent[] = [...this.#asked.resume.map(answerTo), ...results.map((message) => toolResult(message, newId))]
    const resumes = results.at(-1)?.toolCallId ?? this.#asked.resume.at(-1)?.interruptId
    if (resumes === undefined) return { session, create: this.#create(session) }
    return { session, answers, goesOn: { head, resumes } }
  }

  async #begin(beginning: Beginning): Promise<Started> {
    const { session, answers = [], inputs = [], create, joins, snapshots = [], hold, fresh = false, goesOn } = beginning
    const { threadId, runId, parentRunId, legacy, detach, messages, input } = this.#asked
    const { principal } = this.#call
    // The client left while this waited for the run before.
    if (this.#isGone) {
      hold?.close()
      letGo(session)
      throw new UampError('cancelled', 'The client has gone')
    }
    const after = goesOn?.head.after ?? session.lastSeq
    const reader = session.read({ after, extensions: 'all' })
    const joined = joins !== undefined && { joined: { from: joins, messages: hidden(messages) } }
    const parent = parentRunId !== undefined && { parentRunId }
    const note: RunNote = { threadId, runId, legacy, duplex: session.duplex, ...parent, ...joined, ...(input && { input }) }
    try {
      const accepted = answers.map((event) => session.send(event))
      if (create)
        accepted.push(
          session.say(inputs, create, {
            alias: nameOf(runId),
            note: note as unknown as Json,
            principal: this.#call.principal,
            trace: this.#trace,
            ...(answers.every(({ type }) => type !== 'payment.submit') && { payment: this.#asked.payment }),
          }),
        )
      if (detach) session.finish()
      const record: RunRecord = { session: session.id, response: session.lastResponse ?? '', agent: session.agent, after, ...note }
      const goes = goesOn && { ...record, resumes: goesOn.resumes }
      await Promise.all([...accepted, ...(goes ? [this.#runs.set(principal, goes)] : [])])
      const config = (create && responseConfig(session.config, create)) ?? goesOn?.head.config ?? session.config
      const plan = planOf(goes ?? record, { config, given: answers.filter((event) => event.type === 'tool.result') })
      return { session, reader, snapshots, hold, fresh, plan }
    } catch (thrown) {
      hold?.close()
      reader.close()
      letGo(session)
      throw this.#unasked(thrown)
    }
  }

  /** Explains why an answer was refused: nobody asked, or another client has answered. */
  #unasked(thrown: unknown): unknown {
    const error = UampError.from(thrown)
    const id = error.code === 'not_found' ? error.details?.['id'] : undefined
    if (typeof id !== 'string') return thrown
    const entry = this.#asked.resume.find(({ interruptId }) => interruptId === id)
    return entry ? noInterrupt(entry) : noCall(id, 'messages')
  }

  /** `memory`: what the response remembers of the messages. */
  #create(session: Session, memory: object = memoryOf(this.#asked.messages)): EventOf<'response.create'> {
    const { tools, ...settings } = settingsOf({ ...this.#asked, state: this.#state }, session.config, memory)
    // Keep the tools of a session that another protocol opened.
    const offered = tools.length > 0 || session.config.tools === undefined ? { tools } : {}
    return { type: 'response.create', event_id: this.#host.newId(), response: { ...settings, ...offered } }
  }
}

/** What was read, or the end of its hold. */
function held<T>(hold: Hold, reading: Promise<T>): Promise<T> {
  return reading.catch((thrown: unknown) => {
    hold.close()
    throw thrown
  })
}

/** The run will not begin. */
function letGo(session: Session): void {
  void session.release().catch(() => undefined)
}

/** True for messages that say something new; tool results answer questions. */
function isSaid({ role }: WireMessage): boolean {
  return role !== 'tool' && role !== 'activity' && role !== 'reasoning'
}

/** True for messages that input events can express. */
function isPlain(message: WireMessage): boolean {
  if (message.role === 'assistant') return !message.toolCalls?.length
  return message.role !== 'tool' && message.role !== 'reasoning'
}
