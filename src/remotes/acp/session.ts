import type { chosenIn } from '../../core/agent-kit/choices.ts'
import { unlessAborted } from '../../core/basics/time.ts'
import type { ToolCall, ToolResult } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Slot } from '../../protocol/json.ts'
import type { ToolDefinition } from '../../protocol/tools.ts'
import type { ContentBlock } from '../../wire/acp/blocks.ts'
import type { Editor } from './editor.ts'
import { CANCELLED, type Permission } from './permission.ts'
import type { AcpProcess } from './process.ts'
import type { Door } from './tool-server.ts'

/** Prompts that one program may have at a time. More are refused, as each may fill an inbox. */
const PROMPTS = 128
/** Bytes that may wait for one turn. A turn that is further behind is given up, as all turns are read from the same pipe. */
const UNREAD = 8 * 1024 * 1024
/** How long a cancelled prompt may take to be answered before its session is given up. */
const CANCEL_MS = 5_000

type Heard =
  | { readonly update: Slot }
  | { readonly permission: Permission; readonly answer: (outcome: Slot) => void }
  | { readonly call: ToolCall; readonly result: (result: ToolResult) => void }

/** A choice that a session offers. */
export interface Setting {
  current: string | null | undefined
  readonly values: readonly string[]
  readonly request: (value: string) => readonly [method: string, params: object]
}

export interface SessionOptions {
  readonly id: string
  /** The run of the program that has the session open. */
  readonly process: AcpProcess
  readonly settings: Readonly<Record<'mode' | 'model', Setting>>
  /** By which it calls tools of our client. */
  readonly door: Door | undefined
  /** The inboxes of running turns, by the ids of their sessions. */
  readonly inboxes: Map<string, Inbox>
}

interface PromptOptions {
  readonly signal: AbortSignal
  readonly hops: number
  readonly editor: Editor
  readonly payment?: string | undefined
}

/** A session of the other agent. It has one turn at a time. */
export class Session {
  readonly id: string
  readonly process: AcpProcess
  inbox: Inbox | undefined
  /** What the session has cost so far, as the agent counts it. */
  cost = 0
  readonly #options: SessionOptions
  #answered: Promise<void> = Promise.resolve()
  /** A prompt runs, and was not cancelled. */
  #busy = false

  constructor(options: SessionOptions) {
    this.id = options.id
    this.process = options.process
    this.#options = options
  }

  /** Whether another turn may use it: a cancelled prompt must be answered first. */
  free(signal: AbortSignal): Promise<boolean> {
    const answered = unlessAborted(this.#answered, AbortSignal.any([signal, AbortSignal.timeout(CANCEL_MS)]))
    return answered.then(() => true).catch(() => false)
  }

  /** Whether it can call these tools. */
  equip(tools: readonly ToolDefinition[]): boolean {
    const { door } = this.#options
    if (!door || door.closed) return tools.length === 0
    door.offer(tools)
    return true
  }

  async choose(chosen: ReturnType<typeof chosenIn>, signal: AbortSignal): Promise<void> {
    for (const name of ['mode', 'model'] as const) {
      const setting = this.#options.settings[name]
      const value = chosen[name]
      if (value === undefined || value === setting.current || !setting.values.includes(value)) continue
      const [method, params] = setting.request(value)
      await this.process.ask(method, { sessionId: this.id, ...params }, signal)
      setting.current = value
    }
  }

  /** Resolves when the prompt is sent. The inbox ends with the answer, or when the turn is aborted. */
  async prompt(
    prompt: readonly ContentBlock[],
    { signal, hops, editor, payment }: PromptOptions,
  ): Promise<{ readonly answer: Promise<unknown>; readonly inbox: Inbox }> {
    const { inboxes } = this.#options
    if (inboxes.size >= PROMPTS) throw new UampError('overloaded', `The agent answers ${PROMPTS} prompts already`)
    const inbox = (this.inbox = new Inbox(() => this.#cancel(), editor))
    inboxes.set(this.id, inbox)
    const { door } = this.#options
    if (door) door.run = (call) => inbox.call(call)
    const paid = payment === undefined ? {} : { 'uamp/payment_token': payment }
    // Beside the prompt, too: that is where UAMP transports have it.
    const beside = { _meta: { uamp: { hops }, ...paid }, ...(payment !== undefined && { payment_token: payment }) }
    const { sent, answer } = this.process.request('session/prompt', { sessionId: this.id, prompt, ...beside })
    this.#busy = true
    const over = (): void => {
      this.#busy = false
      inbox.end()
    }
    this.#answered = answer.then(over, over)
    signal.addEventListener('abort', () => inbox.end(), { once: true })
    try {
      await unlessAborted(sent, signal)
      return { answer, inbox }
    } catch (thrown) {
      this.leave()
      throw thrown
    }
  }

  /** The turn is over, or was left in the middle. */
  leave(): void {
    this.inbox?.close()
    this.#options.inboxes.delete(this.id)
    const { door } = this.#options
    if (door) door.run = undefined
    this.#cancel()
  }

  #cancel(): void {
    if (this.#busy) this.process.notify('session/cancel', { sessionId: this.id })
    this.#busy = false
  }
}

/** The updates and questions of one session, for one turn. */
export class Inbox {
  /** Why it ended early. */
  failure: UampError | undefined
  readonly #onOverflow: () => void
  readonly #queue: { readonly heard: Heard; readonly bytes: number }[] = []
  readonly #asked = new Set<(outcome: Slot) => void>()
  readonly #called = new Set<(result: ToolResult) => void>()
  readonly editor: Editor
  #unread = 0
  #ended = false
  #wake: () => void = () => undefined

  /** `onOverflow`: the turn is given up. */
  constructor(onOverflow: () => void, editor: Editor) {
    this.#onOverflow = onOverflow
    this.editor = editor
  }

  add(heard: Heard, bytes: number): void {
    if (this.#ended) return
    if (this.#unread > UNREAD) {
      this.failure = new UampError('overloaded', `The answer was given up: more than ${UNREAD} bytes of it waited to be read`)
      this.end()
      return this.#onOverflow()
    }
    this.#unread += bytes
    this.#queue.push({ heard, bytes })
    this.#wake()
  }

  /** A question that is open when the turn ends is answered with a cancel. */
  ask(permission: Permission, bytes: number): Promise<Slot> {
    return new Promise((resolve) => {
      if (this.#ended) return resolve(CANCELLED)
      const answer = (outcome: Slot): void => {
        this.#asked.delete(answer)
        resolve(outcome)
      }
      this.#asked.add(answer)
      this.add({ permission, answer }, bytes)
    })
  }

  /** A tool of our client. A call that is open when the turn ends has failed. */
  call(call: ToolCall): Promise<ToolResult> {
    return new Promise((resolve) => {
      if (this.#ended) return resolve(gone(call))
      const result = (given: ToolResult): void => {
        this.#called.delete(result)
        resolve(given)
      }
      this.#called.add(result)
      this.add({ call, result }, call.arguments.length)
    })
  }

  /** `undefined`: there is no more. */
  async next(): Promise<Heard | undefined> {
    if (this.#queue.length === 0 && !this.#ended) await new Promise<void>((resolve) => (this.#wake = resolve))
    const next = this.#queue.shift()
    this.#unread -= next?.bytes ?? 0
    return next?.heard
  }

  /** What came before can still be read, unless it was too much. */
  end(): void {
    this.#ended = true
    if (this.failure) this.#queue.length = 0
    this.#wake()
  }

  /** The turn does not read any more. */
  close(): void {
    this.end()
    this.#queue.length = 0
    for (const answer of this.#asked) answer(CANCELLED)
    for (const result of this.#called) result(gone({ id: '' }))
  }
}

function gone({ id }: Pick<ToolCall, 'id'>): ToolResult {
  return { call_id: id, result: 'The prompt is over', status: 'failed', is_error: true }
}
