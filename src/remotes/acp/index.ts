import { Channel } from '../../core/channel.ts'
import { chosenIn } from '../../core/choices.ts'
import { agentCapabilities } from '../../core/define-agent.ts'
import type { AgentPort, Turn } from '../../core/ports/agent.ts'
import type { Log } from '../../core/ports/transport.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { isRecord, type Slot } from '../../protocol/json.ts'
import { backoff } from '../../wire/backoff.ts'
import { RpcError } from '../../wire/json-rpc.ts'
import { Live, type PermissionRequest } from './live.ts'
import { decide } from './permission.ts'
import { blocksOf, keysOf, talksOf, type Talk } from './prompt.ts'
import { Said } from './said.ts'

export interface RemoteAcpOptions {
  /** What it is called here. */
  readonly name: string
  readonly description?: string
  /** The program that is the agent. */
  readonly command: string
  readonly args?: readonly string[]
  /** Beside a few harmless variables of ours; nothing else is inherited, so no key of ours either. */
  readonly env?: Readonly<Record<string, string>>
  /** Where it works. Files that it reads and writes through us, and commands that it runs through us, are in here. */
  readonly folder: string
  /** Whether it may write files through us. Default true. */
  readonly write?: boolean
  /** Whether it may run commands through us. Default true. */
  readonly terminal?: boolean
  readonly log?: Log
}

export interface RemoteAcpAgent extends AgentPort {
  /** Ends the program, and all that it started. */
  close(): Promise<void>
}

/** Conversations whose sessions over there are remembered; of more, the oldest begin anew. */
const KEPT = 1_000
/** Updates that wait to be passed on before no more are read. */
const UNREAD = 256
/** How long a cancelled prompt may take to be answered before its session is given up. */
const CANCEL_MS = 5_000
/** One that ends sooner than this after its start has failed to start. */
const STEADY_MS = 10_000

type Heard = { readonly update: Slot } | { readonly permission: PermissionRequest }

/** An ACP agent, started as a program, as an agent here. It is started with the first turn, and again when it has died. */
export function remoteAcp(options: RemoteAcpOptions): RemoteAcpAgent {
  return new RemoteAcp(options)
}

class RemoteAcp implements RemoteAcpAgent {
  readonly name: string
  readonly description?: string
  capabilities: Capabilities
  readonly #options: RemoteAcpOptions
  /** Sessions over there, by how their conversations are known again. They outlive the program, if it can load them. */
  readonly #sessions = new Map<string, string>()
  readonly #listeners = new Map<string, Channel<Heard>>()
  /** Prompts that were cancelled and are not answered yet. */
  readonly #leaving = new Map<string, Promise<unknown>>()
  readonly #wait = backoff({ minMs: 200, maxMs: 10_000 })
  #live: Promise<Live> | undefined
  #failures = 0
  #closed = false

  constructor(options: RemoteAcpOptions) {
    this.name = options.name
    if (options.description !== undefined) this.description = options.description
    this.capabilities = agentCapabilities(options.name, { provider: 'acp', supports_thinking: true, tools: { supports_tools: false } })
    this.#options = options
  }

  async *run(turn: Turn): AsyncGenerator<Draft, void> {
    const live = await this.#started(turn.signal)
    const { id, known, talk } = await this.#session(live, turn)
    const heard = new Channel<Heard>(UNREAD)
    this.#listeners.set(id, heard)
    let answered = false
    try {
      yield* this.#choose(live, id, turn)
      const answer = live.process.request('session/prompt', { sessionId: id, prompt: blocksOf(talk, { known, accepts: live.accepts }) })
      this.#leaving.set(
        id,
        answer.catch(() => undefined),
      )
      answer.then(
        () => heard.close(),
        () => heard.close(),
      )
      const aborted = (): void => heard.close()
      turn.signal.addEventListener('abort', aborted, { once: true })
      yield* this.#pass(turn, heard, live)
      turn.signal.throwIfAborted()
      answered = true
      const result = await answer.catch(failed)
      this.#leaving.delete(id)
      yield ending(result)
    } finally {
      this.#listeners.delete(id)
      heard.close()
      // Also if it failed: it has heard what was said.
      this.#remember(keysOf(turn, turn.messages), id)
      if (!answered) live.process.notify('session/cancel', { sessionId: id })
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    const live = await this.#live?.catch(() => undefined)
    await live?.stop()
  }

  /** What is said, in order; questions among it are put to our client once what was said before them is on its way. */
  async *#pass(turn: Turn, heard: Channel<Heard>, live: Live): AsyncGenerator<Draft, void> {
    const said = new Said()
    for await (const item of heard) {
      if ('permission' in item) {
        const { toolCall, options, answer } = item.permission
        yield* said.asked(toolCall)
        const decided = decide(turn, toolCall, options).then(answer)
        // Where a question ends the response, nothing may come after it.
        if (turn.duplex === false) await decided
        continue
      }
      const learnt = live.learn(item.update)
      if (learnt) yield* this.#describe(live)
      else yield* said.take(item.update)
    }
  }

  /** Open sessions are told of what can be chosen now. */
  *#describe(live: Live): Generator<Draft, void> {
    const { accepts, choices } = live
    const modalities = [
      'text',
      ...(accepts.image ? ['image'] : []),
      ...(accepts.audio ? ['audio'] : []),
      ...(accepts.embeddedContext ? ['file'] : []),
    ]
    const capabilities = { ...this.capabilities, modalities, extensions: { uamp: choices } }
    if (JSON.stringify(capabilities) === JSON.stringify(this.capabilities)) return
    this.capabilities = capabilities
    yield { type: 'capabilities', capabilities }
  }

  async *#choose(live: Live, id: string, { config }: Turn): AsyncGenerator<Draft, void> {
    yield* this.#describe(live)
    await live.choose(id, chosenIn(config))
  }

  async #session(live: Live, turn: Turn): Promise<{ id: string; known: boolean; talk: Talk }> {
    const talks = talksOf(turn)
    for (const talk of talks) {
      for (const key of keysOf(turn, talk.before)) {
        const id = this.#sessions.get(key)
        this.#sessions.delete(key)
        if (id === undefined || this.#listeners.has(id)) continue
        const left = await settled(this.#leaving.get(id))
        this.#leaving.delete(id)
        if (left && (await live.take(id))) return { id, known: true, talk }
      }
    }
    return { id: await live.open(), known: false, talk: talks.at(-1) ?? { before: [], now: turn.messages } }
  }

  #remember(keys: readonly string[], id: string): void {
    for (const key of keys) {
      this.#sessions.delete(key)
      this.#sessions.set(key, id)
    }
    for (const key of this.#sessions.keys()) {
      if (this.#sessions.size <= KEPT * 2) break
      this.#sessions.delete(key)
    }
  }

  /** One that nobody hears is not given. */
  async #ask(id: string, permission: PermissionRequest): Promise<void> {
    if (!(await this.#listeners.get(id)?.put({ permission }))) permission.answer(undefined)
  }

  async #started(signal: AbortSignal): Promise<Live> {
    if (this.#closed) throw new UampError('agent_offline', `The agent "${this.name}" was stopped`)
    if (this.#live) return this.#live
    if (this.#failures > 0) await pause(this.#wait(this.#failures - 1), signal)
    if (this.#live) return this.#live
    const begun = performance.now()
    const starting = Live.start(this.#options, {
      onUpdate: async (id, update) => void (await this.#listeners.get(id)?.put({ update })),
      onPermission: (id, permission) => void this.#ask(id, permission),
      onEnd: () => {
        if (this.#live === starting) this.#live = undefined
        this.#failures = performance.now() - begun < STEADY_MS ? this.#failures + 1 : 0
      },
    })
    this.#live = starting
    starting.catch(() => {
      if (this.#live === starting) this.#live = undefined
    })
    return starting
  }
}

/** Why it stopped, as our clients are told. */
function ending(result: unknown): Draft {
  const { stopReason, _meta } = isRecord(result) ? result : {}
  if (stopReason === 'cancelled') return { type: 'response.cancelled' }
  const uamp = isRecord(_meta) && isRecord(_meta['uamp']) ? _meta['uamp'] : {}
  const reason =
    stopReason === 'max_tokens' || stopReason === 'max_turn_requests' ? 'length' : stopReason === 'refusal' ? 'content_filter' : undefined
  const usage = isRecord(uamp['usage']) && { usage: uamp['usage'] }
  return {
    type: 'response.done',
    response: {
      id: '',
      status: 'completed',
      output: [],
      ...usage,
      ...(reason !== undefined && { extensions: { uamp: { stop_reason: reason } } }),
    },
  }
}

function failed(thrown: unknown): never {
  if (!(thrown instanceof RpcError)) throw thrown
  const { code, message, data } = thrown
  const known = isRecord(data) && typeof data['code'] === 'string' ? data['code'] : undefined
  if (code === -32402) throw new UampError('payment_required', message, isRecord(data) ? { details: data } : {})
  if (code === -32000) throw new UampError('provider_error', `The agent wants its user to sign in: ${message}`)
  throw new UampError('provider_error', message, { details: { remote_code: known ?? code } })
}

/** Whether a cancelled prompt was answered in time. */
async function settled(leaving: Promise<unknown> | undefined): Promise<boolean> {
  if (!leaving) return true
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<false>((resolve) => (timer = setTimeout(resolve, CANCEL_MS, false)))
  const left = await Promise.race([leaving.then(() => true), late])
  clearTimeout(timer)
  return left
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => (clearTimeout(timer), reject(signal.reason as Error)), { once: true })
  })
}
