import { agentCapabilities } from '../core/agent-kit/define-agent.ts'
import { derivedTurn } from '../core/agent-kit/derived-turn.ts'
import type { Ability, AgentPort, Turn } from '../core/ports/agent.ts'
import type { Handler, HandlerTurn, RoutedEvent, Skill, Tool } from '../core/ports/skill.ts'
import type { Logger, Transport } from '../core/ports/transport.ts'
import { Router } from '../core/agent-kit/router.ts'
import { toolRunner } from '../core/tools/tool-loop.ts'
import type { Capabilities } from '../protocol/capabilities.ts'
import { isMedia } from '../protocol/content.ts'
import type { Draft } from '../protocol/events.ts'
import { plainText, slotsOf, type Message } from '../protocol/message.ts'
import type { SessionConfig } from '../protocol/session-config.ts'
import { abilitiesOf } from './abilities.ts'

export interface AgentInit {
  readonly name: string
  readonly description?: string
  readonly instructions?: string
  readonly skills?: readonly Skill[]
  readonly tools?: readonly Tool[]
  readonly handlers?: readonly Handler[]
  readonly capabilities?: Partial<Capabilities>
  /** The protocols that it is offered through: `events`, `completions` … Default: all. */
  readonly protocols?: readonly string[]
  readonly log?: Logger
}

/** An agent composed of skills. Its router hands a client's input to the handler that takes it, and that handler's events to the next. */
export class Agent implements AgentPort {
  readonly name: string
  readonly description?: string
  readonly capabilities: Capabilities
  readonly protocols?: readonly string[]
  readonly transports: readonly Transport[]
  readonly #instructions: string | undefined
  readonly #skills: readonly Skill[]
  readonly #own: readonly Tool[]
  readonly #router: Router

  constructor(init: AgentInit) {
    const { name, description, instructions, skills = [], tools = [], handlers = [], capabilities, protocols, log } = init
    this.name = name
    if (description !== undefined) this.description = description
    if (protocols) this.protocols = protocols
    this.#instructions = instructions
    this.#skills = skills
    this.#own = tools
    this.transports = skills.flatMap((skill) => (skill.routes ? [{ name: skill.name, routes: (host) => skill.routes?.(host) ?? [] }] : []))
    this.#router = new Router({
      handlers: [...handlers, ...skills.flatMap((skill) => skill.handlers ?? [])],
      observers: skills.flatMap((skill) => skill.observers ?? []),
      ...(log && { log }),
    })
    const built_in_tools = this.tools.map((tool) => tool.name)
    this.capabilities = agentCapabilities(name, {
      tools: { supports_tools: true, supports_parallel_tools: true, built_in_tools },
      ...capabilities,
    })
  }

  get secrets(): readonly string[] {
    return this.#skills.flatMap((skill) => skill.secrets ?? [])
  }

  get abilities(): readonly Ability[] {
    return abilitiesOf(this.#own, this.#skills)
  }

  /** The tools at this moment: a skill may get and lose some. */
  get tools(): readonly Tool[] {
    return [...this.#own, ...this.#skills.flatMap((skill) => skill.tools ?? [])]
  }

  async *run(turn: Turn): AsyncGenerator<Draft, void> {
    const started: Skill[] = []
    try {
      for (const skill of this.#skills) {
        started.push(skill)
        await skill.hooks?.onStart?.(turn)
      }
      yield* this.#router.route(firstEvent(turn.messages), await this.#handlerTurn(turn))
    } finally {
      for (const skill of started) await skill.hooks?.onEnd?.(turn)
    }
  }

  async #handlerTurn(turn: Turn): Promise<HandlerTurn> {
    const tools = this.tools
    return {
      ...derivedTurn(turn, { config: await instructed(turn, this.#instructions, this.#skills) }),
      given: turn,
      tools,
      runTools: toolRunner(turn, { tools }),
    }
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
