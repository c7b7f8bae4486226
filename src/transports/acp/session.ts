import { isEnd, type EndEvent } from '../../core/reading/response-fold.ts'
import { withHops } from '../../core/basics/hops.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { Trace } from '../../core/ports/trace.ts'
import type { AgentPort } from '../../core/ports/agent.ts'
import type { InputEvent, Reader, Session, Visitor } from '../../core/ports/session.ts'
import type { Tool } from '../../core/ports/skill.ts'
import type { Host } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, EventOf, ServerEvent, Unsent } from '../../protocol/events.ts'
import { uampIn, fieldsOf, isRecord, type Slot } from '../../protocol/json.ts'
import type { ContentBlock } from '../../wire/acp/blocks.ts'
import { errorText, notificationText, resultText, type Asking, type RpcId } from '../../wire/json-rpc.ts'
import { paymentRefusal } from '../../protocol/payment-refusal.ts'
import { told, toldBody } from './errors.ts'
import { Begun, isUnpaid, unpaidPrompt } from './history.ts'
import { Permissions } from './permission.ts'
import { ending, responseFor, sameAs, titleOf, toInputs, type Beside, type Prompting } from './prompt.ts'
import type { ClientCapabilities } from './schema.ts'
import { choose, commandsUpdates, settingsOf, settingsUpdates, type SessionSettings } from './settings.ts'
import { Terminals } from './terminals.ts'
import { byName, clientTools, closeAll, goneTool, leftOutNotice, ownTools, resultBy } from './tools.ts'
import type { ClientToolsOptions, Equipment, Folders, LeftOut, McpTools } from './tools.ts'
import { Updates } from './updates.ts'

export interface AcpSessionOptions {
  readonly host: Pick<Host, 'newId' | 'log' | 'agents' | 'gateway'>
  readonly session: Session
  /** Who uses the connection, by the newest credentials. */
  readonly principal: () => Principal
  readonly trace: Trace | undefined
  readonly client: ClientCapabilities
  readonly asking: Asking
  /** Writes in order. Resolves when more may be written. */
  readonly send: (frames: readonly string[]) => Promise<void>
}

/** One session on one connection: prompts in, updates out, questions both ways. */
export class AcpSession implements Visitor {
  readonly session: Session
  updates: Updates
  readonly #options: AcpSessionOptions
  /** Tools of the client itself, and the servers that it brought. */
  #own: readonly Tool[] = []
  #servers: readonly McpTools[] = []
  /** Servers that the client was not told about yet. */
  #leftOut: readonly LeftOut[] = []
  #frames: string[] = []
  #reader: Reader | undefined
  /** Nothing is told up to this place in the log. */
  #told = 0
  /** Everything up to this place had its effect. What is loaded again is told again, but has no second effect. */
  #done = 0
  #prompt: Prompting | undefined
  /** Responses that began in the newest batch that had any. */
  #begun = new Begun()
  readonly #permissions = new Permissions()
  /** Aborts the work for the running response. */
  #work = new AbortController()
  #closed = false
  /** The settings that the client knows, as JSON. */
  #settings: string

  constructor(options: AcpSessionOptions) {
    this.#options = options
    this.session = options.session
    this.updates = this.#newUpdates()
    this.#settings = JSON.stringify(this.settings)
  }

  get settings(): SessionSettings {
    return settingsOf(this.#agent?.capabilities, this.session.config)
  }

  /** Sets the folders and servers that it works with from now on. */
  async equip({ cwd, additionalDirectories }: Folders, { own, servers, leftOut }: Equipment): Promise<void> {
    const before = this.#servers
    this.#servers = servers
    this.#leftOut = leftOut
    const ofEditor = clientTools(this.#options.client, {
      cwd,
      ask: this.#ask,
      onTerminal: (callId, terminalId) => {
        this.updates.calls.terminal(callId, terminalId)
        void this.flush()
      },
    })
    this.#own = [...ofEditor, ...ownTools(own, this.#ask)]
    const { cwd: _, additionalDirectories: __, ...others } = this.#acp
    const acp = { cwd, ...(additionalDirectories?.length && { additionalDirectories }), ...others }
    if (JSON.stringify(acp) !== JSON.stringify(this.#acp)) await this.#update({ ...this.session.config.extensions, acp })
    await closeAll(before)
  }

  /** Prepares for telling the conversation from its beginning: nothing else is told until `follow`. */
  retell(): void {
    this.#told = Infinity
    this.updates = this.#newUpdates()
    if (this.#prompt) this.#prompt.shown = false
  }

  /**
   * Tells everything after `after`, until the connection or the session ends. Without `after` it goes on where it is; a new reader
   * then begins at `from`, to put the questions that are still open.
   */
  follow(after?: number, from = after ?? this.session.lastSeq): void {
    const before = this.#reader
    if (after === undefined && before) return
    this.#told = after ?? this.session.lastSeq
    if (before && this.#told >= this.#done) return
    if (!before) this.#done = from
    const reader = this.session.read({ after: from, extensions: 'all' })
    this.#reader = reader
    before?.close()
    const { host, trace } = this.#options
    const failed = (error: unknown): void => host.log('error', 'A reader failed', { session: this.session.id, error, ...trace?.fields })
    void this.#read(reader).catch(failed)
  }

  /** Follows the session for a client that has just learnt of it. */
  async begin(after?: number): Promise<void> {
    this.follow(after)
    this.#tellCommands()
    if (isRecord(this.#options.client.session?.notices)) for (const each of this.#leftOut) this.updates.tell(leftOutNotice(each))
    this.#leftOut = []
    await this.flush()
  }

  async #read(reader: Reader): Promise<void> {
    try {
      await reader.each(async (batch) => {
        const { gateway } = this.#options.host
        const begun = await Begun.in(batch, (id) => (this.#isShown(id) ? undefined : gateway.response(id, this.session.owner)))
        // A newer reader tells this already.
        if (this.#reader !== reader) return
        this.#begun = begun ?? this.#begun
        batch.visit(this)
        this.#permissions.recall((id) => !this.#isOpen(id))
        return this.flush()
      })
    } catch (thrown) {
      if (this.#reader === reader) this.#skip(thrown)
      throw thrown
    } finally {
      reader.close()
      // A prompt is always answered, and unless a newer reader goes on nothing more will come.
      if (this.#reader === reader) this.#finish((id) => resultText(id, { stopReason: 'cancelled' }))
      await this.flush()
    }
  }

  /** An event could not be told: the prompt fails, and a new reader goes on after it. */
  #skip(thrown: unknown): void {
    this.#finish((id) => errorText(id, told(thrown)))
    this.#reader = undefined
    this.follow()
  }

  /** The client shows the prompt itself, as it sent it. */
  #isShown(response: string): boolean {
    return this.#prompt?.response === response && this.#prompt.shown
  }

  text(text: string, seq = Infinity): void {
    if (seq > this.#told) this.updates.text(text)
    if (seq > this.#done && seq < Infinity) this.#done = seq
  }

  event(event: ServerEvent, seq = Infinity): void {
    if (seq > this.#told) {
      if (event.type === 'response.created' && !this.#isShown(event.response_id)) this.updates.heard(this.#begun.input(event.response_id))
      this.updates.event(event)
    }
    if (seq <= this.#done) return
    if (seq < Infinity) this.#done = seq
    if (isEnd(event)) this.#end(event)
    else if (event.type === 'response.created') {
      if (event.response_id === this.#prompt?.response) this.#entitle(this.#prompt.title)
    } else if (event.type === 'tool.call') void this.#call(event)
    else if (event.type === 'x.approval.request') void this.#approve(event)
    else if (event.type === 'payment.required') this.#pay(event)
    else if (event.type === 'session.updated' || event.type === 'capabilities') {
      this.#tellSettings()
      if (event.type === 'capabilities') this.#tellCommands()
    }
  }

  /** Waits for the end of a cancelled prompt. Gives its answer only if the session is closed meanwhile: else that comes with the end. */
  async prompt(id: RpcId, blocks: readonly ContentBlock[], beside: Beside): Promise<Slot | undefined> {
    const { payment, hops } = beside
    const left = this.#prompt || !isUnpaid(this.session) ? undefined : await unpaidPrompt(this.#options.host.gateway, this.session)
    const before = (this.#prompt ??= left)
    if (before && !before.cancelled) {
      if (before.id !== undefined)
        throw new UampError('response_in_progress', 'Another prompt is in progress: wait for its end, or cancel it')
      if (payment !== undefined && before.isSame(blocks)) {
        before.id = id
        await this.#submit(payment)
        return undefined
      }
      this.cancel()
    }
    if (before) {
      await new Promise((over) => this.#work.signal.addEventListener('abort', over, { once: true }))
      return this.#closed ? { stopReason: 'cancelled' } : this.prompt(id, blocks, beside)
    }
    const asked = responseFor(this.#agent, this.session.config, this.#tools.values())
    const create = { type: 'response.create' as const, event_id: this.#options.host.newId(), response: asked.response }
    const inputs = toInputs(blocks).map((input): InputEvent => ({ ...input, event_id: this.#options.host.newId() }))
    const terminals = this.#options.client.terminal ? new Terminals({ cwd: String(this.#acp['cwd']), ask: this.#ask }) : undefined
    const said = this.session.say(inputs, create, {
      principal: this.#options.principal(),
      trace: withHops(this.#options.trace, hops),
      ...(terminals && { methods: terminals }),
    })
    const { lastResponse: response } = this.session
    const [title, isSame] = [titleOf(blocks), sameAs(blocks)]
    this.#prompt = { id, response, payment, isSame, title, offered: asked.offered, terminals, shown: true, cancelled: false }
    try {
      await said
    } catch (thrown) {
      this.#prompt = undefined
      throw thrown
    }
    return undefined
  }

  /** Without a response there is nothing to cancel, which is no error (ACP, Cancellation). */
  cancel(): void {
    if (this.#prompt) this.#prompt.cancelled = true
    this.#reply({ type: 'response.cancel' })
  }

  answers(id: RpcId): boolean {
    return this.#prompt?.id === id
  }

  async choose(option: string, value: string | boolean): Promise<void> {
    await this.#update(choose(this.#agent?.capabilities, this.session.config, { option, value }))
    // The answer tells the client.
    this.#settings = JSON.stringify(this.settings)
  }

  async flush(): Promise<void> {
    const frames = this.#frames
    if (frames.length === 0) return
    this.#frames = []
    await this.#options.send(frames)
  }

  /** Leaves the session as it is; what runs goes on for a while. */
  async close(): Promise<void> {
    this.#closed = true
    this.#work.abort()
    this.#reader?.close()
    this.session.leave()
    await closeAll(this.#servers)
  }

  #newUpdates(): Updates {
    const { client } = this.#options
    return new Updates({
      sessionId: this.session.id,
      out: (frame) => void this.#frames.push(frame),
      window: () => this.#agent?.capabilities.context_window,
      notices: isRecord(client.session?.notices),
      extras: uampIn(client._meta)['events'] === true,
      hasTerminal: (id) => this.#prompt?.terminals?.knows(id) ?? false,
    })
  }

  /** What this protocol keeps with the session. */
  get #acp(): Slot {
    return fieldsOf(this.session.config.extensions?.['acp'])
  }

  /** The tools of the client. */
  get #tools(): ReadonlyMap<string, Tool> {
    return byName([...this.#own, ...this.#servers.flatMap((server) => server.tools)])
  }

  get #agent(): AgentPort | undefined {
    return this.#options.host.agents.get(this.session.agent)
  }

  #end(event: EndEvent): void {
    const { response_id } = event
    if (response_id === undefined || response_id !== this.#prompt?.response) return this.#renew()
    this.#finish((id) => (event.type === 'response.error' ? errorText(id, toldBody(event.error)) : resultText(id, ending(event))))
  }

  /** The prompt is over: the next one may begin. */
  #finish(text: (id: RpcId) => string): void {
    this.#renew()
    this.#prompt?.terminals?.close()
    this.#answer(text)
    this.#prompt = undefined
  }

  /** Ends the work for a response that is over. */
  #renew(): void {
    this.#work.abort()
    this.#work = new AbortController()
  }

  /** Answers the prompt, once, if it still waits. */
  #answer(text: (id: RpcId) => string): void {
    if (this.#prompt?.id === undefined) return
    this.#frames.push(text(this.#prompt.id))
    this.#prompt.id = undefined
  }

  /** Runs a tool of the client's. Calls of tools that this prompt did not offer are for another client to answer. */
  async #call({ call_id: id, name, arguments: args, response_id }: EventOf<'tool.call'>): Promise<void> {
    if (response_id === undefined || response_id !== this.#prompt?.response) return
    const tool = this.#tools.get(name) ?? (this.#prompt.offered.has(name) ? goneTool(name) : undefined)
    if (!tool) return
    const progress = (text: string): void => {
      this.updates.calls.progress(id, text)
      void this.flush()
    }
    const { signal } = this.#work
    const result = await resultBy(tool, { id, name, arguments: args }, { callId: id, signal, progress, trace: this.#options.trace })
    if (!signal.aborted) this.#reply(result)
  }

  async #approve(event: EventOf<'x.approval.request'>): Promise<void> {
    const { approval_id, tool_call, response_id } = event
    // A reader that joins a running response also sees questions that were answered before.
    if (!this.#isOpen(approval_id)) return
    if (response_id !== this.#prompt?.response && !this.#begun.isPrompt(response_id)) return
    const ask = (params: Slot, signal: AbortSignal): Promise<unknown> => this.#ask('session/request_permission', params, signal)
    const answer = await this.#permissions.decide(event, this.#work.signal, ask)
    if (!answer) return
    const { approved, option, reason } = answer
    // Without a call the question was shown as one.
    if (!tool_call)
      this.updates.tell({ sessionUpdate: 'tool_call_update', toolCallId: approval_id, status: approved ? 'completed' : 'failed' })
    void this.flush()
    this.#reply({ type: 'x.approval.response', approval_id, approved, option, reason })
  }

  /** The question has no answer yet. */
  readonly #isOpen = (question: string): boolean => this.session.asking.some(({ id }) => id === question)

  /** UAMP transports, Payment handling, ACP: the prompt fails with -32402, and the same prompt with a token goes on where it was. */
  #pay(event: EventOf<'payment.required'>): void {
    const prompt = this.#prompt
    // A reader that joins a running response also sees what was paid before.
    if (!prompt || event.response_id !== prompt.response || !isUnpaid(this.session)) return
    const { payment } = prompt
    prompt.payment = undefined
    if (payment !== undefined) return void this.#submit(payment).catch(() => undefined)
    this.#answer((id) => errorText(id, told(paymentRefusal(event, 'Send the prompt again with a "payment_token"'))))
  }

  readonly #submit = (token: string): Promise<void> => this.#send({ type: 'payment.submit', payment: { scheme: 'token', token } })

  #tellSettings(): void {
    const { settings } = this
    const before = this.#settings
    this.#settings = JSON.stringify(settings)
    if (this.#settings !== before) for (const update of settingsUpdates(settings)) this.updates.tell(update)
  }

  #tellCommands(): void {
    for (const update of commandsUpdates(this.#agent?.capabilities)) this.updates.tell(update)
  }

  /** The first prompt of a session gives it its title. */
  #entitle(title: string | undefined): void {
    const acp = this.#acp
    if (!title || acp['title'] !== undefined) return
    this.updates.tell({ sessionUpdate: 'session_info_update', title })
    this.#update({ ...this.session.config.extensions, acp: { ...acp, title } }).catch((error: unknown) =>
      this.#options.host.log('warn', 'The title of a session could not be stored', { error, ...this.#options.trace?.fields }),
    )
  }

  readonly #update = (extensions: Slot): Promise<void> => this.#send({ type: 'session.update', session: { extensions } })

  /** Asks the client, after everything that it was told so far. */
  readonly #ask: ClientToolsOptions['ask'] = (method, params, signal) => {
    const send = (text: string): void => {
      this.#frames.push(text)
      void this.flush()
    }
    const cancel = (requestId: RpcId): void => send(notificationText('$/cancel_request', { requestId }))
    return this.#options.asking.request(method, { ...params, sessionId: this.session.id }, { send, signal, cancel })
  }

  /** Sends an answer. It may be too late, or another client was first. */
  #reply(event: Unsent): void {
    this.#send(event).catch(() => undefined)
  }

  #send(event: Unsent): Promise<void> {
    return this.session.send({ ...event, event_id: this.#options.host.newId() } as ClientEvent)
  }
}
