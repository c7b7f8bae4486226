import { checkPrice } from '../../core/basics/price.ts'
import type { AgentPrice } from '../../core/ports/payments.ts'
import { agentCapabilities, learnt } from '../../core/agent-kit/define-agent.ts'
import { derivedTurn } from '../../core/agent-kit/derived-turn.ts'
import type { AgentPort, Said, ServerFacts, Turn } from '../../core/ports/agent.ts'
import { secretsOf } from '../../core/secrets/secrets.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft, ServerEvent } from '../../protocol/events.ts'
import type { SocketConstructor } from '../../client/link-websocket.ts'
import { answered, type Line } from '../../upstream/line.ts'
import { lookHttp, openHttp, type Manner } from './line.ts'
import { toDraft } from '../../wire/server-event.ts'
import { openSocket } from './socket-line.ts'
import { outboundAuth, type OutboundAuth } from '../../upstream/outbound-auth.ts'
import { Payer } from '../../upstream/payer.ts'
import type { RemoteOptions } from '../../upstream/upstream.ts'

export interface RemoteEventsOptions extends Pick<RemoteOptions, 'name' | 'token' | 'auth' | 'description' | 'price' | 'wallet'> {
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
  readonly price?: AgentPrice
  /** What the other server said last; until then, what every agent can do. */
  capabilities: Capabilities
  readonly #options: RemoteEventsOptions
  readonly #auth: OutboundAuth | undefined
  /** How the other server takes events over HTTP, once that is known. */
  #manner: Manner | undefined

  constructor(options: RemoteEventsOptions) {
    this.name = options.name
    this.#auth = outboundAuth(options)
    if (options.price) this.price = checkPrice(options.price)
    this.secrets = secretsOf({ values: [options.token, ...(this.#auth?.secrets ?? [])], urls: [options.url] })
    if (options.description !== undefined) this.description = options.description
    this.capabilities = agentCapabilities(options.name, { modalities: ['text', 'image', 'audio', 'video', 'file'] })
    this.#options = options
  }

  run(turn: Turn): AsyncIterable<Said> {
    return answered(
      () => this.#follow(turn),
      { turn, payer: new Payer(turn, this.#options) },
      (event) => this.#pass(event, turn.client?.widgets),
    )
  }

  prepare(server: ServerFacts): void {
    this.#auth?.prepare(server)
  }

  /** A turn may take longer than a token lives. */
  async #follow(turn: Turn): Promise<Line> {
    const line = await this.#open(turn)
    const stop = this.#auth?.keepFresh(turn, (token) => line.send({ type: 'session.update', token }))
    if (!stop) return line
    return {
      next: () => line.next(),
      send: (event) => line.send(event),
      close: (how) => {
        stop()
        line.close(how)
      },
    }
  }

  #open(turn: Turn): Promise<Line> {
    if (/^wss?:/i.test(this.#options.url)) return this.#openSocket(turn)
    const by = this.#auth ? derivedTurn(turn, { http: this.#auth.http(turn) }) : turn
    return openHttp(this.#options, by, { known: this.#manner, learn: (manner) => (this.#manner = manner) })
  }

  async #openSocket(turn: Turn): Promise<Line> {
    if (!this.#auth) return openSocket(this.#options, turn)
    const token = await this.#auth.token(turn)
    try {
      return await openSocket({ ...this.#options, token }, turn)
    } catch (thrown) {
      const isRefused = UampError.from(thrown).details?.['remote_code'] === 'unauthorized'
      if (!isRefused || !(await this.#auth.refused(token, turn))) throw thrown
      return openSocket({ ...this.#options, token: await this.#auth.token(turn) }, turn)
    }
  }

  async learn(by: Pick<Turn, 'http' | 'signal'>): Promise<void> {
    const line = await lookHttp(this.#options, { http: this.#auth?.http(by) ?? by.http, signal: by.signal })
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
        // It goes on: more slowly, or with the newer token that is on its way.
        if (event.error.details?.['slowed'] === true || event.error.details?.['grace_seconds'] !== undefined) return undefined
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
