import * as z from 'zod/mini'
import { chosenIn } from '../../core/choices.ts'
import { ClientAnswers } from '../../core/client-answers.ts'
import { agentCapabilities, learnt } from '../../core/define-agent.ts'
import { done } from '../../core/done.ts'
import { Places } from '../../core/places.ts'
import type { AgentPort, Turn } from '../../core/ports/agent.ts'
import type { Log } from '../../core/ports/transport.ts'
import { pause } from '../../core/time.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { uampIn } from '../../protocol/extensions.ts'
import { fieldsOf, isRecord } from '../../protocol/json.ts'
import { Usage } from '../../protocol/usage.ts'
import { backoff } from '../../wire/backoff.ts'
import { RpcError } from '../../wire/json-rpc.ts'
import { COMMANDS, Live } from './live.ts'
import { decide } from './permission.ts'
import { blocksOf } from './prompt.ts'
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

/** One that ends sooner than this after its start has failed to start. */
const STEADY_MS = 10_000

/** An ACP agent, started as a program, as an agent here. It is started with the first turn, and again when it has died. */
export function remoteAcp(options: RemoteAcpOptions): RemoteAcpAgent {
  return new RemoteAcp(options)
}

class RemoteAcp implements RemoteAcpAgent {
  readonly name: string
  readonly description?: string
  capabilities
  readonly #options: RemoteAcpOptions
  /** Sessions over there, by their ids. They outlive the program, if it can load them. */
  readonly #places = new Places<string>()
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
    const { found, ...talk } = await this.#places.find(turn, (id) => live.take(id))
    const session = found ?? (await live.open())
    const client = new ClientAnswers(turn)
    const said = new Said()
    let over = false
    try {
      yield* this.#describe(live)
      await session.choose(chosenIn(turn.config))
      const answer = session.prompt(blocksOf(talk, { known: found !== undefined, accepts: live.accepts }), turn.signal)
      for await (const heard of session.heard) {
        if ('permission' in heard) {
          // Questions are put to our client once what was said before them is on its way.
          yield* said.announce(heard.permission.toolCall, true)
          const decided = decide(heard.permission, client).then(heard.answer)
          // Where a question ends the response, nothing may come after it.
          if (turn.duplex === false) await decided
        } else if (heard.update['sessionUpdate'] === COMMANDS) yield* this.#describe(live)
        else yield* said.take(heard.update)
      }
      turn.signal.throwIfAborted()
      over = true
      yield ending(await answer.catch(failed))
    } finally {
      // Also if it failed: it has heard what was said.
      void this.#places.keep(turn, { place: session.id, said: said.text })
      session.leave({ over })
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    const live = await this.#live?.catch(() => undefined)
    await live?.stop()
  }

  /** What it takes, and what can be chosen now. */
  *#describe({ accepts, choices }: Live): Generator<Draft, void> {
    const { image, audio, embeddedContext } = accepts
    const modalities = ['text', ...(image ? ['image'] : []), ...(audio ? ['audio'] : []), ...(embeddedContext ? ['file'] : [])]
    const change = learnt(this, { ...this.capabilities, modalities, extensions: { uamp: choices } })
    if (change) yield change
  }

  async #started(signal: AbortSignal): Promise<Live> {
    if (!this.#live && !this.#closed && this.#failures > 0) await pause(this.#wait(this.#failures - 1), signal)
    if (this.#closed) throw new UampError('agent_offline', `The agent "${this.name}" was stopped`)
    return (this.#live ??= this.#start())
  }

  #start(): Promise<Live> {
    const begun = performance.now()
    const ended = (): void => {
      this.#live = undefined
      this.#failures = performance.now() - begun < STEADY_MS ? this.#failures + 1 : 0
    }
    const starting = Live.start(this.#options)
    starting.then((live) => live.ended).then(ended, ended)
    return starting
  }
}

const STOPS = new Map<unknown, string>([
  ['max_tokens', 'length'],
  ['max_turn_requests', 'length'],
  ['refusal', 'content_filter'],
])

/** Why it stopped, as our clients are told. */
function ending(result: unknown): Draft {
  const { stopReason, _meta } = fieldsOf(result)
  if (stopReason === 'cancelled') return { type: 'response.cancelled' }
  const { data: usage } = z.safeParse(Usage, uampIn(fieldsOf(_meta))['usage'])
  return done({ stop: STOPS.get(stopReason), usage })
}

function failed(thrown: unknown): never {
  if (!(thrown instanceof RpcError)) throw thrown
  const { code, message, data } = thrown
  if (code === -32402) throw new UampError('payment_required', message, isRecord(data) ? { details: data } : {})
  if (code === -32000) throw new UampError('provider_error', `The agent wants its user to sign in: ${message}`)
  const known = fieldsOf(data)['code']
  throw new UampError('provider_error', message, { details: { remote_code: typeof known === 'string' ? known : code } })
}
