import { understoodEvents, type ClientProfile } from '../../protocol/capabilities.ts'
import type { Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import type { Principal } from '../ports/access.ts'
import type { ClientMethods, Turn } from '../ports/agent.ts'
import type { PaysAnew } from '../ports/session.ts'
import type { TurnStore } from '../ports/turn-store.ts'
import type { TurnHost, TurnStart } from './turn-parts.ts'

/** What stays the same in a turn from its beginning to its end. */
export class TurnFacts {
  readonly id: string
  readonly sessionId: string
  readonly messages: readonly Message[]
  readonly said: readonly Message[] | undefined
  readonly config: SessionConfig
  readonly asked: Turn['asked']
  readonly transport: string
  readonly chat: string | undefined
  readonly principal: Principal
  readonly client: ClientProfile | undefined
  readonly methods: ClientMethods | undefined
  readonly silent: boolean
  readonly handoff: string | undefined
  /** The client answers a question for money by its whole request again. */
  paysAnew: PaysAnew | undefined
  readonly #host: TurnHost

  constructor(host: TurnHost, start: TurnStart) {
    this.id = start.id
    this.sessionId = host.id
    this.messages = start.messages
    this.said = start.said
    this.config = start.config
    this.asked = start.asked
    this.methods = start.methods
    this.transport = host.transport
    this.chat = host.chat
    this.principal = start.principal ?? host.owner
    this.client = host.client
    this.silent = host.opening?.silent ?? false
    this.handoff = host.opening?.handoff
    this.paysAnew = start.paysAnew ?? host.opening?.paysAnew
    this.#host = host
  }

  get store(): TurnStore {
    return this.#host.store
  }

  get redact(): (text: string) => string {
    return (text) => this.#host.secrets.text(text)
  }

  get duplex(): boolean {
    return this.#host.duplex
  }

  understood(type: string): boolean {
    return this.#host.log.understood(type, understoodEvents(this.#host.client))
  }
}
