import type { Action } from '../../core/ports/access.ts'
import type { Host, KnownCall } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { invalid } from '../../wire/parse.ts'
import { accountOf } from '../accounts.ts'

export interface CallerOptions {
  readonly host: Host
  /** True if whoever has no credentials is the operator of this server: it listens on this machine alone, and admits nobody else. */
  readonly isOpen: () => boolean
}

interface Named {
  readonly principal?: string | undefined
  readonly agent?: string | undefined
  readonly currency?: string | undefined
}

/**
 * Who asks, and whose money they may touch.
 *
 * - Everybody with `pay` uses their own account and their own tokens, and whatever a token whose text they have is good for.
 * - The account of an agent is also for those who may `host` it.
 * - With `bank`, they fill and empty all accounts.
 *
 * What is somebody else's is not found: a refusal would say that it is there.
 */
export class Caller {
  readonly tenant: string
  readonly id: string
  readonly isOperator: boolean
  readonly #call: KnownCall
  readonly #host: Host

  constructor(call: KnownCall, { host, isOpen }: CallerOptions) {
    const { tenant, id } = call.principal
    this.#call = call
    this.#host = host
    this.tenant = tenant
    this.id = id
    host.gateway.authorize(call.principal, 'pay', call.agent)
    // An `Access` may allow everybody everything: money is made only by somebody, or where nobody else can call.
    this.isOperator = id === 'anonymous' ? isOpen() : this.#may('bank', undefined)
  }

  /**
   * Everybody without credentials is one principal, so what one of them has, another could take. They may only do what the text of a
   * token proves by itself.
   */
  checkNamed(): void {
    if (this.id !== 'anonymous' || this.isOperator) return
    throw new UampError('forbidden', 'Nobody without a token of this server has money here', { details: { reason: 'insufficient_scope' } })
  }

  checkOperator(): void {
    this.checkNamed()
    if (!this.isOperator) this.#host.gateway.authorize(this.#call.principal, 'bank', undefined)
  }

  /** True if the money of this agent is theirs to manage. */
  mayActFor(agent: string): boolean {
    return this.isOperator || this.#may('host', agent)
  }

  /** True if it is theirs, or they are the operator. */
  owns(owner: string): boolean {
    return this.isOperator || (this.id === owner && this.id !== 'anonymous')
  }

  /** A token for an agent that these credentials are not for would carry their rights to it. */
  checkMayPay(agents: readonly string[]): void {
    for (const agent of agents) {
      this.#host.gateway.authorize(this.#call.principal, 'pay', agent === '*' ? undefined : agent)
    }
  }

  /** The agent that the path names. */
  get pathAgent(): string | undefined {
    return this.#call.root ? undefined : this.#call.agent
  }

  /** The account that a request names: by default that of whoever asks. */
  account({ principal, agent, currency = 'USD' }: Named): string {
    this.checkNamed()
    if (principal !== undefined && agent !== undefined) throw invalid('Name either a principal or an agent', 'agent')
    const mine = agent === undefined ? this.owns(principal ?? this.id) : this.mayActFor(agent)
    if (!mine) throw new UampError('not_found', 'There is no account of this name')
    return agent === undefined ? accountOf.principal(principal ?? this.id, currency) : accountOf.agent(agent, currency)
  }

  #may(action: Action, agent: string | undefined): boolean {
    try {
      this.#host.gateway.authorize(this.#call.principal, action, agent)
      return true
    } catch (thrown) {
      if (UampError.from(thrown).code === 'forbidden') return false
      throw thrown
    }
  }
}
