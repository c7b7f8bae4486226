import { agentCapabilities } from '../core/agent-kit/define-agent.ts'
import { checkPrice } from '../core/basics/price.ts'
import { derivedTurn } from '../core/agent-kit/derived-turn.ts'
import type { Ability, AgentPort, Turn } from '../core/ports/agent.ts'
import type { AgentPrice } from '../core/ports/payments.ts'
import type { Handler, HandlerTurn, RoutedEvent, Skill, Tool } from '../core/ports/skill.ts'
import type { Host, Logger, Route, Transport } from '../core/ports/transport.ts'
import { Router } from '../core/agent-kit/router.ts'
import { withPrices } from '../core/tools/tool-price.ts'
import { toolRunner } from '../core/tools/tool-loop.ts'
import type { Capabilities } from '../protocol/capabilities.ts'
import { isMedia } from '../protocol/content.ts'
import { UampError } from '../protocol/errors.ts'
import type { Draft } from '../protocol/events.ts'
import { plainText, slotsOf, type Message } from '../protocol/message.ts'
import type { SessionConfig } from '../protocol/session-config.ts'
import { abilitiesOf } from './abilities.ts'
import { checkTools } from './check-tools.ts'

export interface AgentInit {
  readonly name: string
  readonly description?: string
  readonly instructions?: string
  readonly skills?: readonly Skill[]
  readonly tools?: readonly Tool[]
  readonly handlers?: readonly Handler[]
  readonly capabilities?: Partial<Capabilities>
  /** What a response costs: `{ call: '0.01' }`. Default: nothing. */
  readonly price?: AgentPrice
  /** The protocols that it is offered through: `events`, `completions` … Default: all. */
  readonly protocols?: readonly string[]
  readonly log?: Logger
}

/** What an agent is made of at one moment. A turn keeps what it began with. */
interface Composition {
  readonly skills: readonly Skill[]
  readonly router: Router
  readonly transports: readonly Transport[]
  readonly capabilities: Capabilities
}

/** An agent composed of skills. Its router hands a client's input to the handler that takes it, and that handler's events to the next. */
export class Agent implements AgentPort {
  readonly name: string
  readonly description?: string
  readonly protocols?: readonly string[]
  readonly price?: AgentPrice
  readonly #instructions: string | undefined
  readonly #own: readonly Tool[]
  readonly #able: Partial<Capabilities>
  readonly #listeners = new Set<() => void>()
  /** The paths of its skills' routes. */
  readonly #paths = new Set<string>()
  #now: Composition

  constructor(init: AgentInit) {
    const { name, description, instructions, skills = [], tools = [], handlers = [], capabilities = {}, price, protocols, log } = init
    this.name = name
    if (description !== undefined) this.description = description
    if (protocols) this.protocols = protocols
    if (price) this.price = checkPrice(price)
    this.#instructions = instructions
    checkTools(tools)
    this.#own = tools
    this.#able = capabilities
    const router = new Router({ handlers, ...(log && { log }) })
    this.#now = this.#with({ skills: [], router, transports: [] }, skills)
  }

  /**
   * Adds a skill, also while the agent is served. Turns that run go on without it, and the next ones have it; its routes are there at
   * once, after those of the skills before it.
   */
  addSkill(skill: Skill): void {
    if (this.#now.skills.some(({ name }) => name === skill.name)) {
      throw new UampError('conflict', `The agent "${this.name}" has a skill "${skill.name}" already`)
    }
    this.#now = this.#with(this.#now, [skill])
    this.#changed()
  }

  #changed(): void {
    for (const changed of this.#listeners) changed()
  }

  onChange(changed: () => void): () => void {
    this.#listeners.add(changed)
    return () => this.#listeners.delete(changed)
  }

  get capabilities(): Capabilities {
    return this.#now.capabilities
  }

  get transports(): readonly Transport[] {
    return this.#now.transports
  }

  /** The names of its handlers. */
  get handoffs(): readonly string[] {
    return this.#now.router.names
  }

  get secrets(): readonly string[] {
    return this.#now.skills.flatMap((skill) => skill.secrets ?? [])
  }

  get abilities(): readonly Ability[] {
    return abilitiesOf(this.#own, this.#now.skills)
  }

  /** The tools at this moment: a skill may get and lose some. */
  get tools(): readonly Tool[] {
    return this.#toolsOf(this.#now.skills)
  }

  async *run(turn: Turn): AsyncGenerator<Draft, void> {
    const { skills, router } = this.#now
    const started: Skill[] = []
    try {
      for (const skill of skills) {
        started.push(skill)
        await skill.hooks?.onStart?.(turn)
      }
      yield* router.route(firstEvent(turn.messages), await this.#handlerTurn(turn, skills), turn.handoff)
    } finally {
      for (const skill of started) await skill.hooks?.onEnd?.(turn)
    }
  }

  async #handlerTurn(turn: Turn, skills: readonly Skill[]): Promise<HandlerTurn> {
    const tools = this.#toolsOf(skills)
    return {
      ...derivedTurn(turn, { config: await instructed(turn, this.#instructions, skills) }),
      // A handoff is a name of this agent, and means nothing to others.
      given: turn.handoff === undefined ? turn : derivedTurn(turn, {}),
      tools,
      runTools: toolRunner(turn, { tools }),
    }
  }

  #with(before: Omit<Composition, 'capabilities'>, added: readonly Skill[]): Composition {
    const skills = [...before.skills, ...added]
    const built_in_tools = this.#toolsOf(skills).map((tool) => tool.name)
    const provides = abilitiesOf(this.#own, skills).map(({ id }) => id)
    return {
      skills,
      router: before.router.with({
        handlers: added.flatMap((skill) => skill.handlers ?? []),
        observers: added.flatMap((skill) => skill.observers ?? []),
      }),
      transports: [...before.transports, ...added.flatMap((skill) => this.#routesOf(skill))],
      capabilities: agentCapabilities(this.name, {
        tools: { supports_tools: true, supports_parallel_tools: true, built_in_tools },
        ...(provides.length > 0 && { provides }),
        ...this.#able,
        ...this.#endpoints(),
      }),
    }
  }

  /** A skill's routes. Their paths are known when a server mounts them: when it starts, or at the first request after the skill was added. */
  #routesOf(skill: Skill): Transport[] {
    if (!skill.routes) return []
    const routes = (host: Host): readonly Route[] => {
      const mounted = skill.routes?.(host) ?? []
      for (const { path } of mounted) this.#paths.add(path)
      this.#now = { ...this.#now, capabilities: { ...this.#now.capabilities, ...this.#endpoints() } }
      this.#changed()
      return mounted
    }
    return [{ name: skill.name, routes }]
  }

  #endpoints(): Pick<Capabilities, 'endpoints'> {
    const endpoints = [...new Set([...(this.#able.endpoints ?? []), ...this.#paths])]
    return endpoints.length > 0 ? { endpoints } : {}
  }

  #toolsOf(skills: readonly Skill[]): readonly Tool[] {
    return withPrices([...this.#own, ...skills.flatMap((skill) => skill.tools ?? [])], this.price)
  }
}

/** The turn's configuration. The agent's instructions and the prompts of its skills come before the client's instructions. */
export async function instructed(turn: Turn, own: string | undefined, skills: readonly Skill[]): Promise<SessionConfig> {
  const prompts = skills.flatMap((skill) => skill.prompts ?? []).sort((a, b) => (a.priority ?? 0) - (b.priority ?? 0))
  const texts = await Promise.all(prompts.map((prompt) => prompt.text(turn)))
  const instructions = [own, ...texts, turn.config.instructions].filter((text) => text !== undefined && text !== '').join('\n\n')
  return instructions === '' ? turn.config : { ...turn.config, instructions }
}

/**
 * The newest message as an event: `input.text`, or the modality of its first media item if it has no text. It has everything that the
 * client sent with it: role, slots, all content items, and the conversation.
 */
function firstEvent(messages: readonly Message[]): RoutedEvent {
  const last = messages.at(-1) ?? { role: 'user' }
  const { role, content_items } = last
  const whole = { role, messages, ...(content_items && { content_items }), ...slotsOf(last) }
  const text = plainText(last)
  const media = content_items?.find(isMedia)
  return media && text === '' ? { ...media, ...whole, type: `input.${media.type}` } : { ...whole, type: 'input.text', text }
}
