import { ClientAnswers } from '../../upstream/client-answers.ts'
import { agentCapabilities, learnt } from '../../core/agent-kit/define-agent.ts'
import type { AgentPort, Turn } from '../../core/ports/agent.ts'
import { isEnd, isQuestion } from '../../core/reading/response-fold.ts'
import { secretsOf } from '../../core/secrets/secrets.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft, ServerEvent } from '../../protocol/events.ts'
import type { SocketConstructor } from '../../client/link-websocket.ts'
import { lookHttp, openHttp, type Line, type Manner } from './line.ts'
import { toDraft } from './read.ts'
import { openSocket } from './socket-line.ts'
import type { RemoteOptions } from '../../upstream/upstream.ts'

export interface RemoteEventsOptions extends Pick<RemoteOptions, 'name' | 'token' | 'description'> {
  /**
   * The other server, or one agent of it: `https://host`, `https://host/agents/name`. With `wss:` or `ws:` it is spoken to over
   * WebSocket, at `/ws` unless the URL ends in `/ws` or `/uamp`.
   */
  readonly url: string
  /** The name of the agent there. Default: the agent that the URL leads to. */
  readonly agent?: string
  /** Default: the runtime's own, or `ws` on Node. */
  readonly WebSocket?: SocketConstructor
}

/**
 * An agent of another server that speaks UAMP events, as an agent here. Its questions are put to the client, its events go on as they came, and a
 * cancel closes the connection, which cancels the response there.
 */
export function remoteEvents(options: RemoteEventsOptions): RemoteEventsAgent {
  return new RemoteAgent(options)
}

export interface RemoteEventsAgent extends AgentPort {
  /** Learns what the agent can do, which a turn does as well. Rejects if the other server refuses. */
  learn(by: Pick<Turn, 'http' | 'signal'>): Promise<void>
}

class RemoteAgent implements RemoteEventsAgent {
  readonly name: string
  readonly description?: string
  readonly secrets: readonly string[]
  /** What the other server said last; until then, what every agent can do. */
  capabilities: Capabilities
  readonly #options: RemoteEventsOptions
  /** How the other server takes events over HTTP, once that is known. */
  #manner: Manner | undefined

  constructor(options: RemoteEventsOptions) {
    this.name = options.name
    this.secrets = secretsOf({ values: [options.token], urls: [options.url] })
    if (options.description !== undefined) this.description = options.description
    this.capabilities = agentCapabilities(options.name, { modalities: ['text', 'image', 'audio', 'video', 'file'] })
    this.#options = options
  }

  async *run(turn: Turn): AsyncGenerator<Draft, void> {
    const line = await this.#open(turn)
    const answers = new ClientAnswers(turn)
    const open = new OpenAnswers()
    let over = false
    try {
      for (let next = line.next(); !over;) {
        const events = await open.unlessFailed(next)
        // Questions come last: on a one-way transport the first of them ends the response.
        for (const event of events) {
          over ||= isEnd(event)
          const draft = isQuestion(event) ? undefined : this.#pass(event, turn.client?.widgets)
          if (draft) yield draft
        }
        if (over) return
        next = line.next()
        const questions = events.filter(isQuestion)
        if (questions.length === 0) continue
        const answered = Promise.all(questions.map(async (question) => line.send(await answers.to(question))))
        if (turn.duplex !== false) open.add(answered)
        // The response ends here with its questions. If the other side ends meanwhile, its words cannot be passed on.
        else await Promise.race([answered, next.then((after) => (after.some(isEnd) ? undefined : answered))])
      }
    } finally {
      line.close({ over })
    }
  }

  #open(turn: Turn): Promise<Line> {
    if (/^wss?:/i.test(this.#options.url)) return openSocket(this.#options, turn)
    return openHttp(this.#options, turn, { known: this.#manner, learn: (manner) => (this.#manner = manner) })
  }

  async learn(by: Pick<Turn, 'http' | 'signal'>): Promise<void> {
    const line = await lookHttp(this.#options, by)
    try {
      for (let learnt = false; !learnt;) {
        for (const event of await line.next()) {
          this.#pass(event)
          learnt ||= event.type === 'capabilities'
        }
      }
    } finally {
      line.close({ over: false })
    }
  }

  /** `widgets`: those of our client, if it named some. The other server tells only of those that both have. */
  #pass(event: ServerEvent, widgets?: readonly string[]): Draft | undefined {
    switch (event.type) {
      case 'session.error':
        if (event.error.details?.['slowed'] === true) return undefined
        throw new UampError('provider_error', `The server of "${this.name}" refused: ${event.error.message}`, {
          details: { remote_code: event.error.code },
        })
      case 'session.end':
        throw new UampError('interrupted', `The server of "${this.name}" ended the session: ${event.reason ?? 'it gave no reason'}`)
      case 'capabilities':
        return learnt(this, { ...event.capabilities, ...(widgets && this.#widgetsWith(event.capabilities)), id: this.name })
      // About our own use of the other server.
      case 'rate_limit':
        return undefined
      default:
        return toDraft(event)
    }
  }

  /** Those that are known already, and those that the other server told of now. */
  #widgetsWith({ widgets = [] }: Capabilities): Pick<Capabilities, 'widgets'> {
    const all = new Set([...(this.capabilities.widgets ?? []), ...widgets])
    return all.size > 0 ? { widgets: [...all] } : {}
  }
}

/** Answers that are on their way while the response goes on. */
class OpenAnswers {
  #count = 0
  #fail: (error: unknown) => void = () => undefined
  readonly #failed = new Promise<never>((_, reject) => (this.#fail = reject))

  constructor() {
    // Awaited only while there are some.
    this.#failed.catch(() => undefined)
  }

  add(answered: Promise<unknown>): void {
    this.#count++
    answered.then(() => this.#count--, this.#fail)
  }

  unlessFailed<T>(promise: Promise<T>): Promise<T> {
    return this.#count === 0 ? promise : Promise.race([promise, this.#failed])
  }
}
