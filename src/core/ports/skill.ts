import type { ContentItem } from '../../protocol/content.ts'
import type { Draft } from '../../protocol/events.ts'
import type { JsonSchema } from '../tools/json-schema.ts'
import type { StandardSchema } from '../tools/standard-schema.ts'
import type { ToolRunner } from '../tools/tool-loop.ts'
import type { Turn } from './agent.ts'
import type { HttpClient } from './http.ts'
import type { Host, Route } from './transport.ts'

/** What an agent is composed of. Every part is optional. */
export interface Skill {
  readonly name: string
  /** What the agent can do with it, for those who look for an agent. Default: what its tools say of themselves. */
  readonly description?: string
  readonly tools?: readonly Tool[]
  readonly handlers?: readonly Handler[]
  readonly observers?: readonly Observer[]
  readonly prompts?: readonly Prompt[]
  readonly hooks?: Hooks
  /** What it shows to others: kept out of errors and logs. */
  readonly secrets?: readonly string[]
  /** HTTP and WebSocket routes of its own. They come before the built-in ones. */
  routes?(host: Host): readonly Route[]
}

export interface Tool {
  readonly name: string
  readonly description?: string
  /** The arguments, as JSON Schema or a schema of zod and others. What does not fit is told to the agent, and `run` is not called. */
  readonly parameters?: JsonSchema | StandardSchema
  readonly timeoutMs?: number
  /** Whether somebody must allow a call before it runs. */
  readonly needsApproval?:
    boolean | ((args: Readonly<Record<string, unknown>>, context: Pick<ToolContext, 'turn' | 'callId'>) => boolean | Promise<boolean>)
  /**
   * Whether clients may call it themselves, beside any conversation and with arguments of their choice (`tools/call` of ACP). Default:
   * no, only the agent calls it.
   */
  readonly direct?: boolean
  /** What a call costs, for whoever settles it. */
  readonly price?: { readonly amount: string; readonly currency: string }
  /** A text, any JSON value, or a `ToolOutput`. What it throws is told to the agent. */
  run(args: Readonly<Record<string, unknown>>, context: ToolContext): unknown
}

/** A tool's answer with media or data beside the text. */
export interface ToolOutput {
  readonly text: string
  readonly content_items?: readonly ContentItem[]
  readonly data?: unknown
}

export interface ToolContext {
  readonly turn: Turn
  readonly callId: string
  readonly signal: AbortSignal
  /**
   * The host's client for addresses that a model or a user names: it calls nothing on this machine or in its network. For addresses
   * that you wrote yourself there is `turn.http`.
   */
  readonly http: HttpClient
  /** Shown to the client while the tool runs. */
  progress(text: string): void
}

/** An event inside an agent: a client's input, what goes to the client, or a type of the agent's own. */
export type RoutedEvent = { readonly type: string; readonly [field: string]: unknown } | Draft

/** What handlers get: the turn, with the agent's prompts in its instructions, and the agent's tools. */
export interface HandlerTurn extends Turn {
  /** The turn as it came, without the agent's prompts: for whoever it is handed to. */
  readonly given: Turn
  readonly tools: readonly Tool[]
  readonly runTools: ToolRunner
}

/** Takes events of some types and yields others (UAMP events §12). */
export interface Handler {
  readonly name: string
  /** Types, `*` for what nobody else takes, or patterns. */
  readonly subscribes: readonly (string | RegExp)[]
  readonly produces?: readonly string[]
  /** Higher is preferred. Default 0. */
  readonly priority?: number
  process(event: RoutedEvent, turn: HandlerTurn): AsyncIterable<RoutedEvent>
}

/** Sees events without taking them. It can neither slow nor break the path. */
export interface Observer {
  readonly name: string
  readonly subscribes: readonly (string | RegExp)[]
  observe(event: RoutedEvent): void | Promise<void>
}

/** A part of the instructions. Lower priorities come first. */
export interface Prompt {
  readonly priority?: number
  text(turn: Turn): string | Promise<string>
}

export interface Hooks {
  onStart?(turn: Turn): void | Promise<void>
  /** Always, also after a failure or a cancel. */
  onEnd?(turn: Turn): void | Promise<void>
}
