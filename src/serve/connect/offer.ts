import { toldCapabilities } from '../../core/basics/shown-price.ts'
import type { AgentPort } from '../../core/ports/agent.ts'
import type { UampError } from '../../protocol/errors.ts'
import { UAMP_VERSION } from '../../protocol/version.ts'
import { CONNECT_VERSION } from '../../wire/connect.ts'

/** A secret, or what makes one for an agent whenever it is needed. */
export type ConnectToken = string | ((agent: string) => string | Promise<string>)

/** A token that ends is replaced when so much of its time is left, and not more often than this. */
const LEFT = 0.25
const SOONEST_MS = 1_000
const LONGEST_MS = 2 ** 31 - 1

/** One agent that is offered to a host. */
export class Offer {
  readonly agent: AgentPort
  readonly #token: ConnectToken | undefined
  /** The id of the `session.create` that has no answer yet. */
  asked: string | undefined
  /** Its session on the present socket. */
  sessionId: string | undefined
  /** Why it is no longer offered. */
  over: UampError | undefined
  /** Refusals in a row. */
  refusals = 0
  retry: ReturnType<typeof setTimeout> | undefined
  #refresh: ReturnType<typeof setTimeout> | undefined
  #settle: { resolve(): void; reject(error: UampError): void } | undefined
  /** Resolves when the agent is hosted for the first time. Rejects if the host refuses it before. */
  readonly ready: Promise<void>
  isReady = false

  constructor(agent: AgentPort, token: ConnectToken | undefined) {
    this.agent = agent
    this.#token = token
    this.ready = new Promise((resolve, reject) => (this.#settle = { resolve, reject }))
    this.ready.catch(() => undefined)
  }

  get name(): string {
    return this.agent.name
  }

  /** Undefined: it has none. */
  async token(): Promise<string | undefined> {
    return (await (typeof this.#token === 'function' ? this.#token(this.name) : this.#token)) || undefined
  }

  /** The event that offers the agent. */
  create(token: string | undefined, { instance, leaving, newId }: { instance: string; leaving: boolean; newId: () => string }): object {
    const { name, description } = this.agent
    const capabilities = toldCapabilities(this.agent)
    this.asked = newId()
    const connect = {
      version: CONNECT_VERSION,
      instance,
      ...(leaving && { leaving }),
      ...(description !== undefined && { description }),
    }
    return {
      type: 'session.create',
      event_id: this.asked,
      uamp_version: UAMP_VERSION,
      agent: name,
      ...(token !== undefined && { token }),
      // Some hosts read both from here.
      session: {
        modalities: capabilities.modalities,
        agent: name,
        ...(token !== undefined && { token }),
        extensions: { uamp: { connect } },
      },
      client_capabilities: capabilities,
    }
  }

  hosted(sessionId: string): void {
    this.asked = undefined
    this.sessionId = sessionId
    this.refusals = 0
    this.isReady = true
    this.#settle?.resolve()
  }

  /** The socket is gone. */
  lost(): void {
    this.asked = this.sessionId = undefined
    clearTimeout(this.retry)
    clearTimeout(this.#refresh)
  }

  /** Calls `send` with a newer token before this one ends. Only for tokens that are made, and that say when they end. */
  refreshLater(token: string | undefined, send: (token: string) => void): void {
    clearTimeout(this.#refresh)
    const endsAt = typeof this.#token === 'function' ? endOf(token) : undefined
    if (endsAt === undefined) return
    const wait = Math.max(SOONEST_MS, (endsAt - Date.now()) * (1 - LEFT))
    // A failure shows when the host ends the session: the next connection asks again.
    this.#refresh = setTimeout(() => void this.refresh(send).catch(() => this.refreshLater(token, send)), Math.min(wait, LONGEST_MS))
    this.#refresh.unref()
  }

  /** Calls `send` with a newer token now, if tokens are made. */
  async refresh(send: (token: string) => void): Promise<void> {
    if (typeof this.#token !== 'function') return
    const next = await this.token()
    if (this.sessionId === undefined || next === undefined) return
    send(next)
    this.refreshLater(next, send)
  }

  end(reason: UampError): void {
    this.lost()
    this.over = reason
    this.#settle?.reject(reason)
  }
}

/** When a token ends, if it is a JWT that says so. It is only read: the host checks it. */
function endOf(token: string | undefined): number | undefined {
  try {
    const claims = JSON.parse(Buffer.from(token?.split('.')[1] ?? '', 'base64url').toString()) as { exp?: unknown }
    return typeof claims.exp === 'number' ? claims.exp * 1000 : undefined
  } catch {
    return undefined
  }
}

/** A refusal that the next attempt may not meet. A limit that does not say when to come again stays. */
export function isTransient({ code, after }: { readonly code: string; readonly after: unknown }): boolean {
  if (code === 'rate_limited') return typeof after === 'number'
  return ['overloaded', 'internal', 'timeout', 'interrupted'].includes(code)
}
