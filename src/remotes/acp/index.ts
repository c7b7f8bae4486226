import { checkPrice } from '../../core/basics/price.ts'
import type { AgentPrice } from '../../core/ports/payments.ts'
import * as z from 'zod/mini'
import { nextHops } from '../../core/basics/hops.ts'
import { chosenIn } from '../../core/agent-kit/choices.ts'
import { ClientAnswers } from '../../upstream/client-answers.ts'
import { agentCapabilities, learnt } from '../../core/agent-kit/define-agent.ts'
import { done } from '../../core/agent-kit/done.ts'
import { Payer, type RemoteWallet } from '../../upstream/payer.ts'
import { Places, type Conversation } from '../../upstream/places.ts'
import type { AgentPort, Turn } from '../../core/ports/agent.ts'
import type { Logger } from '../../core/ports/transport.ts'
import { secretsOf } from '../../core/secrets/secrets.ts'
import { pause, unlessAborted } from '../../core/basics/time.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { fieldsOf, uampIn } from '../../protocol/json.ts'
import { itemsOf, plainText } from '../../protocol/message.ts'
import type { Payment } from '../../protocol/payment.ts'
import { Usage } from '../../protocol/usage.ts'
import { toBlock, type Accepts, type ContentBlock } from '../../wire/acp/blocks.ts'
import { demandIn, paymentText, type Demand } from '../../wire/demand.ts'
import { backoff } from '../../wire/backoff.ts'
import { RpcError } from '../../wire/json-rpc.ts'
import { Editor } from './editor.ts'
import { COMMANDS, Live } from './live.ts'
import { allows, decide, outcomeOf } from './permission.ts'
import { Unheard } from './process.ts'
import { Said } from './said.ts'
import type { Inbox, Session } from './session.ts'

export interface RemoteAcpOptions {
  /** The name of the agent here. */
  readonly name: string
  readonly description?: string
  /** The program that is the agent. */
  readonly command: string
  readonly args?: readonly string[]
  /** Added to a few harmless variables of ours. Nothing else is inherited, so no key of ours either. */
  readonly env?: Readonly<Record<string, string>>
  /** Where it works. Files that it reads or writes through us, and commands that it runs through us, stay in here. */
  readonly folder: string
  /** Whether it may write files through us. Default true. */
  readonly write?: boolean
  /** Whether it may run commands through us. Default true. */
  readonly terminal?: boolean
  /** How long it may take to answer anything but a prompt. After that it is ended. Default one minute. */
  readonly timeoutMs?: number
  /** What callers here pay for it. Default: nothing. */
  readonly price?: Omit<AgentPrice, 'tools'>
  readonly log?: Logger
  /** Pays what the agent wants. Default: whoever asks is asked to pay it. */
  readonly wallet?: RemoteWallet
}

export interface RemoteAcpAgent extends AgentPort {
  /** Ends the program, and all that it started. */
  close(): Promise<void>
}

/** A program that ends sooner than this after its start has failed to start. */
const STEADY_MS = 10_000
/** The code of an agent that wants money, and how often it may in one turn. */
const UNPAID = -32402
const PAYMENTS = 16
/** How often a prompt is sent that the program did not read. */
const ATTEMPTS = 2

/** An ACP agent, as an agent here. Its program is started with the first turn, and again after it died. */
export function remoteAcp(options: RemoteAcpOptions): RemoteAcpAgent {
  return new RemoteAcp(options)
}

class RemoteAcp implements RemoteAcpAgent {
  readonly name: string
  readonly description?: string
  readonly secrets: readonly string[]
  readonly price?: AgentPrice
  capabilities
  readonly #options: RemoteAcpOptions
  /** Its sessions. They outlive the program, if it can load them. */
  readonly #places = new Places<Session>()
  readonly #wait = backoff({ minMs: 200, maxMs: 10_000 })
  #live: Promise<Live> | undefined
  /** Resolves when the program that was started last has ended. */
  #gone: Promise<void> = Promise.resolve()
  #failures = 0
  readonly #closed = new AbortController()

  constructor(options: RemoteAcpOptions) {
    this.name = options.name
    if (options.price) this.price = checkPrice(options.price)
    this.secrets = secretsOf({ program: options })
    if (options.description !== undefined) this.description = options.description
    this.capabilities = agentCapabilities(options.name, { provider: 'acp', supports_thinking: true, tools: { supports_tools: true } })
    this.#options = options
  }

  async *run(turn: Turn): AsyncGenerator<Draft, void> {
    const talk = await this.#places.find(turn)
    // A turn that runs again gives calls other ids.
    const client = new ClientAnswers(turn, { numbered: true })
    const said = new Said()
    let session = talk.place
    let asked = false
    const payer = new Payer(turn, this.#options)
    try {
      let begun: Begun = await this.#begin(turn, talk)
      session = begun.session
      asked = true
      yield* this.#describe(begun.live)
      for (let payments = 0; ; payments++) {
        yield* this.#hear(begun, { turn, client, said })
        const ended = await begun.answer.then(
          (result) => ({ result }),
          (thrown: unknown) => ({ thrown }),
        )
        if ('result' in ended) {
          yield* said.end()
          payer.hearMetadata(fieldsOf(ended.result)['_meta'])
          return yield payer.told(ending(ended.result)) as Draft
        }
        const demand = payments < PAYMENTS ? demandOf(ended.thrown) : undefined
        if (!demand) throw explained(ended.thrown)
        begun = await begun.again(await payer.pay(demand))
      }
    } finally {
      // Also after a failure: the other agent has the prompt.
      void this.#places.keep(turn, { place: session, said: said.text, ...(!asked && { heard: talk.before }) })
      session?.leave()
      await payer.end()
    }
  }

  /** All that comes until the prompt is answered. */
  async *#hear({ inbox, live, session }: Begun, { turn, client, said }: Hearing): AsyncGenerator<Draft, void> {
    for (let heard = await inbox.next(); heard; heard = await inbox.next()) {
      if ('permission' in heard) {
        const { permission, answer } = heard
        yield* said.question(permission.toolCall)
        const decided = decide(permission, said.whole(permission.toolCall), client).then((chosen) => {
          if (!allows(chosen)) said.deny(permission.toolCall)
          answer(outcomeOf(chosen))
        })
        // On a one-way transport the question ends the response, so nothing may come after it.
        if (turn.duplex === false) await decided
      } else if ('call' in heard) {
        const answered = client.result(heard.call).then(heard.result, () => session.leave())
        if (turn.duplex === false) await answered
      } else if (heard.update['sessionUpdate'] === COMMANDS) yield* this.#describe(live)
      else yield* said.take(heard.update, session)
    }
    turn.signal.throwIfAborted()
    if (inbox.failure) throw inbox.failure
  }

  async close(): Promise<void> {
    this.#closed.abort(new UampError('agent_offline', `The agent "${this.name}" was stopped`))
    const live = await this.#live?.catch(() => undefined)
    await live?.stop()
  }

  /** Sends the prompt. Writing may show that the program has died: it then read nothing, and is started again. */
  async #begin(turn: Turn, { place, before, now }: Conversation & { readonly place: Session | undefined }): Promise<Begun> {
    const { signal } = turn
    const asking = { signal, hops: nextHops(turn.trace) }
    for (let attempt = 1; ; attempt++) {
      const live = await this.#started(signal)
      try {
        const { tools = [] } = turn.config
        const known = place && (await live.take(place, tools, asking))
        const session = known ?? (await live.open(tools, asking))
        await session.choose(chosenIn(turn.config), signal)
        const blocks = blocksOf({ before, now }, { known: known !== undefined, accepts: live.accepts })
        const prompt = async (payment?: Payment): Promise<Begun> => {
          const sent = await session.prompt(blocks, { ...asking, editor: new Editor(turn), payment: payment && paymentText(payment) })
          return { live, session, ...sent, again: prompt }
        }
        return await prompt()
      } catch (thrown) {
        if (!(thrown instanceof Unheard)) throw explained(thrown)
        if (attempt === ATTEMPTS) throw await live.ended
        await this.#gone
      }
    }
  }

  /** Tells which content the agent takes and what can be chosen, if that changed. */
  *#describe({ accepts, choices }: Live): Generator<Draft, void> {
    const { image, audio, embeddedContext } = accepts
    const modalities = ['text', ...(image ? ['image'] : []), ...(audio ? ['audio'] : []), ...(embeddedContext ? ['file'] : [])]
    const change = learnt(this, { ...this.capabilities, modalities, extensions: { uamp: choices } })
    if (change) yield change
  }

  async #started(signal: AbortSignal): Promise<Live> {
    const { signal: closed } = this.#closed
    if (!this.#live && this.#failures > 0) await pause(this.#wait(this.#failures - 1), AbortSignal.any([signal, closed]))
    closed.throwIfAborted()
    return unlessAborted((this.#live ??= this.#start()), signal)
  }

  #start(): Promise<Live> {
    const begun = performance.now()
    const ended = (): void => {
      this.#live = undefined
      this.#failures = performance.now() - begun < STEADY_MS ? this.#failures + 1 : 0
    }
    const starting = Live.start(this.#options, this.#closed.signal)
    this.#gone = starting.then((live) => live.ended).then(ended, ended)
    return starting
  }
}

/** A prompt that was sent. `again`: with a payment that its answer has asked for. */
interface Begun {
  readonly live: Live
  readonly session: Session
  readonly answer: Promise<unknown>
  readonly inbox: Inbox
  again(payment: Payment): Promise<Begun>
}

interface Hearing {
  readonly turn: Turn
  readonly client: ClientAnswers
  readonly said: Said
}

const STOPS = new Map<unknown, string>([
  ['max_tokens', 'length'],
  ['max_turn_requests', 'length'],
  ['refusal', 'content_filter'],
])

/** The end of a prompt, as our clients are told it. */
function ending(result: unknown): Draft {
  const { stopReason, _meta } = fieldsOf(result)
  if (stopReason === 'cancelled') return { type: 'response.cancelled' }
  const { data: usage } = z.safeParse(Usage, uampIn(fieldsOf(_meta))['usage'])
  // Only clients of ACP have a name for this one.
  const extensions = stopReason === 'max_turn_requests' ? { acp: { stopReason } } : undefined
  return done({ stop: STOPS.get(stopReason), usage, extensions })
}

/** A turn as a prompt. `known`: the other agent has the conversation before it. */
function blocksOf(
  { before, now }: Conversation,
  { known, accepts }: { readonly known: boolean; readonly accepts: Accepts },
): ContentBlock[] {
  const blocks = now.flatMap((message) => itemsOf(message).flatMap((item) => toBlock(item, accepts) ?? []))
  if (known || before.length === 0) return blocks
  const lines = before.flatMap((message) => {
    const text = message.role === 'tool' ? '' : plainText(message)
    return text === '' ? [] : [`${message.role}: ${text}`]
  })
  return [{ type: 'text', text: `The conversation so far:\n${lines.join('\n')}\n\nNow:\n` }, ...blocks]
}

/** What the agent wants to be paid before it answers. */
function demandOf(thrown: unknown): Demand | undefined {
  if (!(thrown instanceof RpcError) || thrown.code !== UNPAID) return undefined
  return demandIn({ error: thrown.message, data: thrown.data })
}

/** The error of an agent, as our clients see it. */
function explained(thrown: unknown): unknown {
  if (!(thrown instanceof RpcError)) return thrown
  const { code, message, data } = thrown
  // Its details name no amount: whoever asks us is not to pay this here.
  if (code === UNPAID) return new UampError('payment_required', message)
  if (code === -32000) return new UampError('provider_error', `The agent wants its user to sign in: ${message}`)
  const known = fieldsOf(data)['code']
  return new UampError('provider_error', message, { details: { remote_code: typeof known === 'string' ? known : code } })
}
