import { UampError } from '../../protocol/errors.ts'
import type { AgentPort, ServerFacts } from '../ports/agent.ts'
import type { Agents } from '../ports/transport.ts'

/** Names appear in paths and store keys. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

/** The agents of one gateway. They may be added, replaced and removed while it runs: each response looks up its agent by name. */
export class AgentRegistry implements Agents {
  readonly #agents = new Map<string, AgentPort>()
  readonly #listeners = new Set<(name: string) => void>()
  readonly #protocols: readonly string[] | undefined
  readonly #facts: ServerFacts
  /** Ends the notices of each agent that gives some. */
  readonly #leave = new Map<string, () => void>()

  /** `protocols`: the names that an agent's own `protocols` may have. Default: any. */
  constructor({ protocols, ...facts }: ServerFacts & { readonly protocols?: readonly string[] } = {}) {
    this.#protocols = protocols
    this.#facts = facts
  }

  add(agent: AgentPort): void {
    if (!NAME.test(agent.name)) {
      throw new UampError('invalid_request', `"${agent.name}" cannot be an agent's name: use letters, digits, dots, dashes and underscores`)
    }
    this.#checkProtocols(agent)
    agent.prepare?.(this.#facts)
    this.#forget(agent.name)
    this.#agents.set(agent.name, agent)
    const tell = (): void => {
      for (const listener of this.#listeners) listener(agent.name)
    }
    const leave = agent.onChange?.(tell)
    if (leave) this.#leave.set(agent.name, leave)
    tell()
  }

  /** Calls the listener with the name of each agent that is added or replaced, or has changed. Returns a function that removes the listener. */
  onChange(listener: (name: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** False when there is no agent of that name. */
  remove(name: string): boolean {
    this.#forget(name)
    return this.#agents.delete(name)
  }

  /** Asks the agents for no more notices. An agent may outlive its server. */
  close(): void {
    for (const name of [...this.#leave.keys()]) this.#forget(name)
  }

  get(name: string): AgentPort | undefined {
    return this.#agents.get(name)
  }

  names(): readonly string[] {
    return [...this.#agents.keys()]
  }

  #forget(name: string): void {
    this.#leave.get(name)?.()
    this.#leave.delete(name)
  }

  #checkProtocols({ name, protocols = [] }: AgentPort): void {
    const unknown = protocols.find((protocol) => this.#protocols?.includes(protocol) === false)
    if (unknown === undefined) return
    const message = `The agent "${name}" names the protocol "${unknown}", but there are: ${this.#protocols?.join(', ')}`
    throw new UampError('invalid_request', message, { details: { agent: name, protocols: this.#protocols } })
  }
}
