import type { Reader, Session, Visitor } from '../../core/ports/session.ts'
import type { Host } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, EventOf, ServerEvent } from '../../protocol/events.ts'
import { isRecord, type Slot } from '../../protocol/json.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { errorText, resultText, type RpcId } from '../../wire/json-rpc.ts'
import { paymentRefusal } from '../../wire/payment.ts'
import { toInputs } from './content.ts'
import { told, toldBody } from './errors.ts'
import { askPermission, type Decision } from './permission.ts'
import type { ContentBlock } from './schema.ts'
import { choose, commandsOf, settingsOf } from './settings.ts'
import type { SessionTools } from './tools.ts'
import { Updates } from './updates.ts'

export interface AcpSessionOptions {
  readonly host: Pick<Host, 'newId' | 'log' | 'agents'>
  readonly session: Session
  readonly notices: boolean
  readonly extras: boolean
  /** Writes in order. Resolves when more may be written. */
  readonly send: (frames: readonly string[]) => Promise<void>
  /** Puts a request into `out` and gives its answer. */
  readonly ask: (
    method: string,
    params: Slot,
    how: { readonly out: (text: string) => void; readonly signal?: AbortSignal },
  ) => Promise<unknown>
  readonly tools: (session: AcpSession) => SessionTools
}

/** A `session/prompt` that waits for its answer. */
interface Prompting {
  readonly id: RpcId
  /** The response that answers it. */
  readonly response: string | null
  /** What it pays with, until somebody asked. */
  payment: string | undefined
  /** What it says, by which it is known again. */
  readonly words: string
}

export interface PromptRequest {
  readonly blocks: readonly ContentBlock[]
  readonly payment: string | undefined
}

/** Characters of a title. */
const TITLE = 80

/** One session on one connection: prompts in, updates out, questions both ways. */
export class AcpSession implements Visitor {
  readonly session: Session
  readonly updates: Updates
  readonly #options: AcpSessionOptions
  readonly #tools: SessionTools
  /** Tools whose calls the user allowed for good, for as long as this session is open here. */
  readonly #allowed = new Set<string>()
  #frames: string[] = []
  #reader: Reader | undefined
  #prompt: Prompting | undefined
  /** The response that runs, whoever asked for it. */
  #running: string | undefined
  /** It waits for a payment, and its prompt was answered with that. */
  #unpaid: { readonly response: string | null; readonly words: string; readonly over: Promise<void>; readonly end: () => void } | undefined
  /** Ends what is done for the running response. */
  #work = new AbortController()
  #settings: string

  constructor(options: AcpSessionOptions) {
    const { session, notices, extras } = options
    this.#options = options
    this.session = session
    const out = (frame: string): void => void this.#frames.push(frame)
    this.updates = new Updates({ sessionId: session.id, out, window: () => this.#capabilities?.context_window, notices, extras })
    this.#tools = options.tools(this)
    this.#settings = JSON.stringify(this.settings())
  }

  settings(): Slot {
    return settingsOf(this.#capabilities, this.session.config)
  }

  /** Follows the session, from behind `after`, until the connection or the session ends. */
  follow(after = this.session.head): void {
    const reader = this.session.read({ after, extensions: 'all' })
    this.#reader = reader
    void this.#read(reader).catch((error: unknown) =>
      this.#options.host.log('error', 'A reader failed', { session: this.session.id, error }),
    )
  }

  async #read(reader: Reader): Promise<void> {
    try {
      const batches = reader[Symbol.asyncIterator]()
      for (let step = await batches.next(); !step.done; step = await batches.next()) {
        step.value.visit(this)
        await this.flush()
      }
    } finally {
      reader.close()
      // Nothing more will come, and a prompt is always answered.
      if (this.#prompt) this.#answer({ stopReason: 'cancelled' })
      await this.flush()
    }
  }

  text(text: string): void {
    this.updates.text(text)
  }

  event(event: ServerEvent): void {
    this.updates.event(event)
    switch (event.type) {
      case 'response.created':
        this.#running = event.response_id
        return
      case 'tool.call':
        return this.#call(event)
      case 'x.approval.request':
        return void this.#approve(event)
      case 'payment.required':
        return this.#pay(event)
      case 'session.updated':
      case 'capabilities':
        return this.#tellSettings(event.type === 'capabilities')
      case 'response.done':
      case 'response.error':
      case 'response.cancelled':
        return this.#end(event)
      default:
    }
  }

  async prompt(id: RpcId, { blocks, payment }: PromptRequest): Promise<void> {
    const { host } = this.#options
    const words = JSON.stringify(blocks)
    if (this.#prompt) throw new UampError('response_in_progress', 'A prompt is being answered: wait for its end, or cancel it')
    const unpaid = this.#unpaid
    if (unpaid && payment !== undefined && unpaid.words === words) {
      this.#unpaid = undefined
      this.#prompt = { id, response: unpaid.response, payment: undefined, words }
      return this.#submit(payment)
    }
    if (unpaid) {
      this.cancel()
      await unpaid.over
    }
    // Asked before anything is said: what was said in vain would be part of the next prompt.
    if (this.#running !== undefined)
      throw new UampError('response_in_progress', 'Somebody else asked this session something: wait for its end')
    this.#entitle(blocks)
    const inputs = toInputs(blocks, host.newId)
    const config = this.session.config
    const tools = [...(config.tools ?? []), ...this.#tools.definitions(this.#capabilities?.tools?.built_in_tools ?? [])]
    const create: ClientEvent = { type: 'response.create', event_id: host.newId(), ...(tools.length > 0 && { response: { tools } }) }
    const sent = [...inputs, create].map((event) => this.session.send(event))
    this.#prompt = { id, response: this.session.turn, payment, words }
    try {
      await Promise.all(sent)
    } catch (thrown) {
      this.#prompt = undefined
      await this.flush()
      throw thrown
    }
  }

  cancel(): void {
    // Without a response there is nothing to cancel, which is no error (ACP, Cancellation).
    this.session.send({ type: 'response.cancel', event_id: this.#options.host.newId() }).catch(() => undefined)
  }

  answers(id: RpcId): boolean {
    return this.#prompt?.id === id
  }

  async choose(option: string, value: string | boolean): Promise<Slot> {
    const extensions = choose(this.#capabilities, this.session.config, { option, value })
    await this.#update(extensions)
    this.#settings = JSON.stringify(this.settings())
    return this.settings()
  }

  commands(): void {
    const availableCommands = commandsOf(this.#capabilities)
    if (availableCommands.length > 0) this.updates.tell({ sessionUpdate: 'available_commands_update', availableCommands })
  }

  terminal(callId: string, terminalId: string): void {
    this.updates.calls.terminal(callId, terminalId)
    void this.flush()
  }

  async flush(last: readonly string[] = []): Promise<void> {
    const frames = this.#frames
    this.#frames = []
    if (frames.length > 0 || last.length > 0) await this.#options.send([...frames, ...last])
  }

  /** Leaves the session as it is; what runs goes on for a while. */
  async close(): Promise<void> {
    this.#work.abort()
    this.#reader?.close()
    await this.#tools.close()
  }

  get #capabilities(): Capabilities | undefined {
    return this.#options.host.agents.get(this.session.agent)?.capabilities
  }

  #end(event: EventOf<'response.done' | 'response.error' | 'response.cancelled'>): void {
    this.#running = undefined
    this.#work.abort()
    this.#work = new AbortController()
    const { response_id: id } = event
    if (id !== undefined && this.#unpaid?.response === id) {
      this.#unpaid.end()
      this.#unpaid = undefined
    }
    const prompt = this.#prompt
    if (!prompt || id === undefined || id !== prompt.response) return
    if (event.type === 'response.cancelled') return this.#answer({ stopReason: 'cancelled' })
    if (event.type === 'response.error') {
      this.#prompt = undefined
      return void this.#frames.push(errorText(prompt.id, toldBody(event.error)))
    }
    const { usage, extensions } = event.response
    const { signature } = event
    const uamp = { responseId: id, ...(usage && { usage }), ...(signature !== undefined && { signature }) }
    this.#answer({ stopReason: stopReason(extensions), _meta: { uamp } })
  }

  #answer(result: Slot): void {
    if (this.#prompt) this.#frames.push(resultText(this.#prompt.id, result))
    this.#prompt = undefined
  }

  /** A tool of the client's. What was not offered with a prompt of ours is somebody else's to answer. */
  #call({ call_id, name, arguments: args, response_id }: EventOf<'tool.call'>): void {
    if (!this.#tools.has(name) || response_id === undefined || response_id !== this.#prompt?.response) return
    const progress = (text: string): void => {
      this.updates.calls.progress(call_id, text)
      void this.flush()
    }
    const { signal } = this.#work
    void this.#tools.call({ id: call_id, name, arguments: args }, { callId: call_id, signal, progress }).then((answer) => {
      const { result, is_error, content_items } = answer
      const items = content_items && { content_items: [...content_items] }
      if (!signal.aborted) this.#reply({ type: 'tool.result', event_id: this.#options.host.newId(), call_id, result, is_error, ...items })
    })
  }

  async #approve(event: EventOf<'x.approval.request'>): Promise<void> {
    const { approval_id, tool_call } = event
    const { signal } = this.#work
    const name = tool_call?.name
    const out = (text: string): void => void this.#frames.push(text)
    const answer: Decision =
      name !== undefined && this.#allowed.has(name)
        ? { approved: true }
        : await askPermission(event, (params) =>
            this.#options.ask('session/request_permission', { sessionId: this.session.id, ...params }, { out, signal }),
          )
    if (signal.aborted) return
    if (answer.always && name !== undefined) this.#allowed.add(name)
    const { approved, option, reason } = answer
    // It was shown as a call of its own.
    if (!tool_call)
      this.updates.tell({ sessionUpdate: 'tool_call_update', toolCallId: approval_id, status: approved ? 'completed' : 'failed' })
    void this.flush()
    this.#reply({ type: 'x.approval.response', event_id: this.#options.host.newId(), approval_id, approved, option, reason })
  }

  /** UAMP transports, Payment handling, ACP: the prompt fails with -32402, and the same prompt with a token goes on where it was. */
  #pay(event: EventOf<'payment.required'>): void {
    const prompt = this.#prompt
    if (!prompt || event.response_id !== prompt.response) return
    const { payment } = prompt
    prompt.payment = undefined
    if (payment !== undefined) return void this.#submit(payment)
    this.#frames.push(errorText(prompt.id, told(paymentRefusal(event))))
    this.#prompt = undefined
    let end = (): void => undefined
    const over = new Promise<void>((resolve) => (end = resolve))
    this.#unpaid = { response: prompt.response, words: prompt.words, over, end }
  }

  async #submit(token: string): Promise<void> {
    await this.session.send({ type: 'payment.submit', event_id: this.#options.host.newId(), payment: { scheme: 'token', token } })
  }

  /** Too late, or somebody else was first. */
  #reply(event: ClientEvent): void {
    this.session.send(event).catch(() => undefined)
  }

  #tellSettings(commands: boolean): void {
    const settings = this.settings()
    const text = JSON.stringify(settings)
    if (text !== this.#settings) {
      this.#settings = text
      const { modes, configOptions } = settings
      if (isRecord(modes)) this.updates.tell({ sessionUpdate: 'current_mode_update', currentModeId: modes['currentModeId'] })
      if (configOptions !== undefined) this.updates.tell({ sessionUpdate: 'config_option_update', configOptions })
    }
    if (commands) this.commands()
  }

  /** A session is called after what was said in it first. */
  #entitle(blocks: readonly ContentBlock[]): void {
    const { extensions } = this.session.config
    const acp = isRecord(extensions?.['acp']) ? extensions['acp'] : {}
    if (acp['title'] !== undefined) return
    const text = blocks.map((block) => (block.type === 'text' ? block.text : '')).join('')
    const title = text.trim().split('\n')[0]?.slice(0, TITLE)
    if (title === undefined || title === '') return
    this.updates.tell({ sessionUpdate: 'session_info_update', title })
    this.#update({ ...extensions, acp: { ...acp, title } }).catch((error: unknown) =>
      this.#options.host.log('warn', 'A session got no title', { error }),
    )
  }

  #update(extensions: Slot): Promise<void> {
    return this.session.send({ type: 'session.update', event_id: this.#options.host.newId(), session: { extensions } })
  }
}

/** ACP, Stop Reasons. */
function stopReason(extensions: Readonly<Slot> | undefined): string {
  const uamp = extensions?.['uamp']
  const reason = isRecord(uamp) ? uamp['stop_reason'] : undefined
  if (reason === 'length') return 'max_tokens'
  if (reason === 'content_filter' || reason === 'rejected' || reason === 'refusal') return 'refusal'
  return 'end_turn'
}
