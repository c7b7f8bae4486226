import type { ContentItem } from '../../protocol/content.ts'
import type { Draft } from '../../protocol/events.ts'
import type { JsonSchema } from '../tools/json-schema.ts'
import type { StandardSchema } from '../tools/standard-schema.ts'
import type { ToolRunner } from '../tools/tool-loop.ts'
import type { Turn } from './agent.ts'
import type { HttpClient } from './http.ts'
import type { Host, Route } from './transport.ts'

/** A part that agents are composed of. Everything but its name is optional. */
export interface Skill {
  readonly name: string
  /** What the agent can do with this skill, for its card. Default: the descriptions of its tools. */
  readonly description?: string
  readonly tools?: readonly Tool[]
  readonly handlers?: readonly Handler[]
  readonly observers?: readonly Observer[]
  readonly prompts?: readonly Prompt[]
  readonly hooks?: Hooks
  /** Keys and tokens that the skill sends to others: they are kept out of errors and logs. */
  readonly secrets?: readonly string[]
  /** The skill's own HTTP and WebSocket routes. They come before the built-in ones. */
  routes?(host: Host): readonly Route[]
}

export interface Tool {
  readonly name: string
  readonly description?: string
  /** The arguments, as JSON Schema or a schema of zod and others. If they do not match, the agent is told, and `run` is not called. */
  readonly parameters?: JsonSchema | StandardSchema
  readonly timeoutMs?: number
  /** True if somebody must approve a call before it runs. */
  readonly needsApproval?:
    boolean | ((args: Readonly<Record<string, unknown>>, context: Pick<ToolContext, 'turn' | 'callId'>) => boolean | Promise<boolean>)
  /**
   * True if clients may call the tool directly, outside any conversation and with any arguments (`tools/call` of ACP). Default:
   * false, only the agent calls it.
   */
  readonly direct?: boolean
  /** What a call costs. Whoever asks the agent pays for it before it runs, and not if it fails. */
  readonly price?: ToolPrice
  /** Returns a text, any JSON value, or a `ToolOutput`. The agent is told what it throws. */
  run(args: Readonly<Record<string, unknown>>, context: ToolContext): unknown
}

/** A fixed price, or functions: `lock` says what is set aside before the tool runs, `settle` what it cost in the end. */
export type ToolPrice = {
  /** Default: `USD`. */
  readonly currency?: string
  /** Shown to whoever pays. */
  readonly reason?: string
} & (
  | { readonly amount: string }
  | {
      lock(args: Readonly<Record<string, unknown>>): string | Promise<string>
      settle?(result: string, args: Readonly<Record<string, unknown>>): string | Promise<string>
    }
)

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
   * For addresses that a model or a user names: it never calls this machine or its network. For addresses that you wrote yourself,
   * use `turn.http`.
   */
  readonly http: HttpClient
  /** Shown to the client while the tool runs. */
  progress(text: string): void
}

/** An event inside an agent: a client's input, an event for the client, or one of the agent's own types. */
export type RoutedEvent = { readonly type: string; readonly [field: string]: unknown } | Draft

/** The turn that handlers get: its instructions hold the agent's prompts, and it has the agent's tools. */
export interface HandlerTurn extends Turn {
  /** The turn as it came, without the agent's prompts: hand this one to other agents. */
  readonly given: Turn
  readonly tools: readonly Tool[]
  readonly runTools: ToolRunner
}

/** Takes events of some types and yields others (UAMP events §12). */
export interface Handler {
  readonly name: string
  /** Event types or patterns; `*` takes what no other handler takes. */
  readonly subscribes: readonly (string | RegExp)[]
  /** The types that it yields. Others are not routed: they are logged as unroutable. Default: any. */
  readonly produces?: readonly string[]
  /** Higher is preferred. Default 0. */
  readonly priority?: number
  process(event: RoutedEvent, turn: HandlerTurn): AsyncIterable<RoutedEvent | string>
}

/** Sees events without taking them. It can neither delay nor break the agent. */
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
  /** Always called, even after a failure or a cancel. */
  onEnd?(turn: Turn): void | Promise<void>
}
