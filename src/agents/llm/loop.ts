import { text } from '../../core/agent-kit/drafts.ts'
import type { AgentPort, Turn } from '../../core/ports/agent.ts'
import type { RoutedEvent, Tool } from '../../core/ports/skill.ts'
import { outputMessages } from '../../core/reading/output.ts'
import { toolDefinition } from '../../core/tools/tool.ts'
import { toolRunner, type ToolRunnerOptions } from '../../core/tools/tool-loop.ts'
import type { ToolCall, ToolResult } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Message } from '../../protocol/message.ts'
import type { SessionConfig, ResponseFormat } from '../../protocol/session-config.ts'
import type { ToolDefinition } from '../../protocol/tools.ts'
import { handedTurn, Handoffs, withoutCallsOf, type Handoff } from './handoff.ts'
import { modelsFor, type AnnouncedModels } from './model.ts'
import { ModelChain, type ChainOptions } from './model-chain.ts'
import { CallIds, Step } from './step.ts'
import { jsonIn } from '../../protocol/json.ts'
import { mistakesIn } from '../../core/tools/json-schema.ts'

export interface LoopOptions {
  readonly name: string
  readonly chain: ChainOptions
  /** The tools at this moment: an MCP server may change them. */
  readonly tools: () => readonly Tool[]
  readonly handoffs: readonly Handoff[]
  readonly maxSteps: number
  readonly limits: Pick<ToolRunnerOptions, 'budget' | 'timeoutMs' | 'resultLength'>
  readonly checkOutput: boolean
  readonly announced: AnnouncedModels
}

/**
 * Asks the model, runs the tools that it calls, and asks again, until it calls none. `instructed` gives the turn's configuration with
 * the agent's own instructions. A handoff gets the turn without them.
 */
export async function* modelLoop(
  options: LoopOptions,
  turn: Turn,
  instructed: () => Promise<SessionConfig>,
): AsyncGenerator<RoutedEvent | string, void> {
  const { maxSteps } = options
  const handoffs = new Handoffs(options.handoffs, [...(turn.through ?? []), options.name])
  const tools = [...options.tools(), ...handoffs.tools]
  const runTools = toolRunner(turn, { tools, fromModel: true, ...options.limits })
  const config = withTools(await instructed(), tools)
  const chain = new ModelChain(options.chain, modelsFor(options.chain.models, config, turn.transport))
  const messages = [...turn.messages, ...(turn.said ?? [])]
  const ids = new CallIds(messages)
  const check = options.checkOutput ? checkerOf(config.response_format) : undefined
  let repaired = false

  // If the turn was left while a tool ran, its calls still need results, and the model is not asked for them again. A call in
  // `messages` does not count, because a client may have made it up.
  const left = unanswered(turn.said ?? [])
  if (left.length > 0) messages.push(...resultMessages(yield* runTools(left)))

  for (let number = 1; ; number++) {
    const step = new Step(ids, check !== undefined)
    const { model, first, rest, over } = await chain.open(messages, config, { context: turn, first: number === 1 })
    try {
      // UAMP events §6.4: clients are told when another model answers than the one that was announced.
      if (options.announced.change(turn.sessionId, model)) yield { type: 'capabilities', capabilities: await options.chain.describe(model) }
      for (const draft of first) {
        const told = step.take(draft)
        if (told) yield told
      }
      for (let next = await rest.next(); !next.done; next = await rest.next()) {
        const told = step.take(next.value.type === 'thinking' ? chain.marked(next.value, model) : next.value)
        if (told) yield told.type === 'usage.delta' ? chain.priced(told, model) : told
      }
    } catch (thrown) {
      over(thrown)
      throw thrown
    } finally {
      await rest.return?.()
      over()
    }

    const calls = step.calls
    if (calls.length === 0 || step.stopped) {
      const checked = check && !step.stopped && !step.refused ? check(step.held) : { text: step.held }
      if (checked.mistakes && repaired) throw misshapen(checked.mistakes)
      if (checked.mistakes) {
        repaired = true
        messages.push(...step.messages, { role: 'user', content: complaint(checked.mistakes) })
        continue
      }
      if (checked.text !== '') yield text(checked.text)
      const { end } = step
      if (end) yield end
      return
    }

    if (number >= maxSteps) {
      throw new UampError('tool_budget_exceeded', `The model still called tools after ${maxSteps} steps`, { details: { steps: maxSteps } })
    }
    messages.push(...step.messages)
    messages.push(...resultMessages(yield* runTools(calls)))
    const { chosen } = handoffs
    if (chosen) {
      const names = new Set(handoffs.tools.map((tool) => tool.name))
      yield* handOver(turn, { ...chosen, by: options.name, messages: withoutCallsOf(names, messages) })
      return
    }
  }
}

/** All tools that the model may call. A tool of the agent hides a client's tool with the same name, as the tool runner does. */
function withTools(config: SessionConfig, tools: readonly Tool[]): SessionConfig {
  const all = new Map<string, ToolDefinition>()
  for (const tool of tools) all.set(tool.name, toolDefinition(tool))
  for (const tool of config.tools ?? []) if (!all.has(tool.function.name)) all.set(tool.function.name, tool)
  return all.size === 0 ? config : { ...config, tools: [...all.values()] }
}

/** Calls of the newest message that have no result. */
function unanswered(messages: readonly Message[]): ToolCall[] {
  const index = messages.findLastIndex(({ role }) => role !== 'tool')
  const calls = messages[index]?.role === 'assistant' ? (messages[index].tool_calls ?? []) : []
  const answered = new Set(messages.slice(index + 1).map(({ tool_call_id }) => tool_call_id))
  return calls.filter(({ id }) => !answered.has(id))
}

function resultMessages(results: readonly ToolResult[]): Message[] {
  return outputMessages(results.map((tool_result) => ({ type: 'tool_result', tool_result })))
}

interface Handing {
  readonly to: AgentPort | string
  readonly reason: string
  readonly callId: string
  readonly by: string
  readonly messages: readonly Message[]
}

async function* handOver(turn: Turn, { to, reason, callId, by, messages }: Handing): AsyncGenerator<RoutedEvent | string, void> {
  // Text beside the call is not a question to the next agent.
  const asked = messages.slice(0, messages.findLastIndex(({ role, tool_calls }) => role !== 'assistant' || tool_calls) + 1)
  if (typeof to === 'string') {
    yield { type: to, text: reason, messages: asked }
    return
  }
  yield { type: 'x.subagent.started', subagent_id: callId, name: to.name, call_id: callId }
  yield* to.run(handedTurn(turn, { messages: asked, by, reason }))
  yield { type: 'x.subagent.finished', subagent_id: callId, status: 'completed' }
}

function misshapen(mistakes: readonly string[]): UampError {
  return new UampError('provider_error', `The model did not answer in the requested form: ${mistakes.join('; ')}`, {
    details: { mistakes },
  })
}

/** A text in the requested form, or its mistakes. */
type Checked = { readonly text: string; readonly mistakes?: undefined } | { readonly mistakes: readonly string[] }

/** The check for a requested form of the answer (UAMP events §8.3). */
function checkerOf(format: ResponseFormat | undefined): ((text: string) => Checked) | undefined {
  if (!format || format.type === 'text') return undefined
  const schema = format.type === 'json_schema' ? (format.json_schema.schema ?? {}) : { type: 'object' }
  return (text) => {
    const json = unfenced(text)
    const value = jsonIn(json)
    if (value === undefined) return { mistakes: ['It is not JSON'] }
    const mistakes = mistakesIn(schema, value)
    return mistakes.length > 0 ? { mistakes } : { text: json }
  }
}

/** Models without a JSON mode often put JSON into a Markdown block. */
function unfenced(given: string): string {
  const text = given.trim()
  if (!text.startsWith('```') || !text.endsWith('```') || !text.includes('\n')) return given
  return text.slice(text.indexOf('\n') + 1, -3).trim()
}

/** The message to the model about an answer with mistakes. */
function complaint(mistakes: readonly string[]): string {
  return `Your answer does not have the requested form: ${mistakes.join('; ')}. Answer again, with nothing but the corrected JSON.`
}
