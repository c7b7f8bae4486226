import type { ToolCall, ToolResult } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import type { Message } from '../../protocol/message.ts'
import { AnsweredCalls } from '../engine/answered-calls.ts'
import { Channel } from '../agent-kit/channel.ts'
import type { Turn } from '../ports/agent.ts'
import type { Tool } from '../ports/skill.ts'
import { TimeLimits } from './time-limits.ts'
import { paidTool } from './tool-price.ts'
import { askApproval, failed, prepare, runTool, type Prepared } from './tool-call.ts'

/** Most calls in one turn, tools that run at the same time, and the time of each. */
const BUDGET = 64
const PARALLEL = 8
const TIMEOUT_MS = 60_000
/** Most characters of a result: about what fits into a model's window beside a conversation. */
const RESULT_LENGTH = 256 * 1024
/** Most events of tools that the agent has not yielded yet; beyond it tools wait. */
const UNREAD = 64

export interface ToolRunnerOptions {
  readonly tools: readonly Tool[]
  readonly budget?: number
  readonly timeoutMs?: number
  /** A longer result is cut off, with a note. */
  readonly resultLength?: number
  /**
   * The calls come from a model that has read the conversation. They were already streamed, so they are not yielded again; and a
   * call that repeats an answered one is made again.
   */
  readonly fromModel?: boolean
}

/** Queues an event for clients; `seen` is called once the agent has yielded it. */
type Emit = (draft: Draft, seen?: () => void) => Promise<boolean>

/** Runs tools for one turn: yields the events for clients, and returns the results in the order of the calls. */
export type ToolRunner = (calls: readonly ToolCall[]) => AsyncGenerator<Draft, ToolResult[], void>

/** How to handle a call: run it here, send it to the client, or fail it. */
type Plan = { readonly index: number; readonly call: ToolCall } & (
  | { readonly kind: 'here'; readonly prepared: Prepared }
  | { readonly kind: 'client' }
  | { readonly kind: 'failed'; readonly error: unknown }
)

/**
 * Runs the server's tools here, in parallel; sends calls of the client's tools out as `tool.call` and waits for `tool.result`. If both
 * have a tool of one name, the server's is called: otherwise the client could forge the results of the server's tools.
 * Nothing is thrown to the agent: a tool that fails, takes too long, does not exist or gets invalid arguments gives a failed result.
 */
export function toolRunner(
  turn: Turn,
  { tools, budget = BUDGET, timeoutMs = TIMEOUT_MS, resultLength = RESULT_LENGTH, fromModel = false }: ToolRunnerOptions,
): ToolRunner {
  const own = new Map(tools.map((tool) => [tool.name, tool]))
  const offered = new Set(turn.config.tools?.map((tool) => tool.function.name).filter((name) => !own.has(name)))
  const earlier = new AnsweredCalls(fromModel ? [] : turn.messages)
  const time = new TimeLimits(() => turn.signal)
  let left = budget

  async function plan(call: ToolCall, index: number): Promise<Plan> {
    if (left-- <= 0) {
      const error = new UampError('tool_budget_exceeded', `This turn may make ${budget} tool calls`)
      return { index, call, kind: 'failed', error }
    }
    if (offered.has(call.name)) return { index, call, kind: 'client' }
    const tool = own.get(call.name)
    try {
      if (!tool) throw new UampError('not_found', `There is no tool "${call.name}"`)
      return { index, call, kind: 'here', prepared: await prepare(turn, { call, tool, timeoutMs: tool.timeoutMs ?? timeoutMs }, time) }
    } catch (error) {
      return { index, call, kind: 'failed', error }
    }
  }

  async function perform(todo: Plan, emit: Emit): Promise<ToolResult> {
    const { call } = todo
    // Clients must see the call before the question about it.
    if (!fromModel) {
      await new Promise<void>((resolve) => void emit({ type: 'response.delta', delta: { type: 'tool_call', tool_call: call } }, resolve))
    }
    const progress = (text: string): void =>
      void emit({ type: 'response.delta', delta: { type: 'tool_progress', tool_progress: { call_id: call.id, text } } })
    try {
      if (todo.kind === 'failed') throw todo.error
      if (todo.kind === 'client') return await askClient(turn, call, { timeoutMs, anew: fromModel })
      const { prepared } = todo
      if (prepared.approval) await askApproval(turn, call)
      return await paidTool(turn, prepared, () => runTool(turn, prepared, { time, resultLength, progress }))
    } catch (thrown) {
      turn.signal.throwIfAborted()
      return failed(call, thrown, { length: resultLength, redact: turn.redact })
    } finally {
      if (todo.kind !== 'client') await emit({ type: 'tool.call_done', call_id: call.id })
    }
  }

  async function work(calls: readonly ToolCall[], emit: Emit): Promise<ToolResult[]> {
    const results: ToolResult[] = []
    const open: Promise<Plan>[] = []
    for (const [index, call] of calls.entries()) {
      const known = offered.has(call.name) ? earlier.take(call) : undefined
      // The client already has the call and its result.
      if (known) results[index] = answeredBefore(call, known.result)
      else open.push(plan(call, index))
    }
    const one = async (todo: Plan): Promise<void> => {
      const result = await perform(todo, emit)
      results[todo.index] = result
      await emit({ type: 'response.delta', delta: { type: 'tool_result', tool_result: result } })
    }
    const plans = await Promise.all(open)
    const asks = (todo: Plan): boolean =>
      todo.kind === 'client' || (todo.kind === 'here' && (todo.prepared.approval || todo.prepared.tool.price !== undefined))
    const here = inParallel(
      plans.filter((todo) => !asks(todo)),
      one,
    )
    // On a one-way transport a question ends the response, so results that came after it would be lost.
    if (turn.duplex === false) await here
    await Promise.all([here, ...plans.filter(asks).map(one)])
    return results
  }

  return async function* run(calls) {
    const drafts = new Channel<{ draft: Draft; seen: (() => void) | undefined }>(UNREAD)
    const emit: Emit = (draft, seen) => drafts.put({ draft, seen })
    const working = work(calls, emit).finally(() => drafts.close())
    // Awaited below, but an abort before that must not count as an unhandled rejection.
    working.catch(() => undefined)
    for await (const { draft, seen } of drafts) {
      yield draft
      seen?.()
    }
    return await working
  }
}

async function inParallel<T>(todo: readonly T[], one: (item: T) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    for (let index = next++; index < todo.length; index = next++) await one(todo[index] as T)
  }
  await Promise.all(Array.from({ length: Math.min(PARALLEL, todo.length) }, worker))
}

async function askClient(
  turn: Turn,
  { id, name, arguments: args }: ToolCall,
  { timeoutMs, anew }: { timeoutMs: number; anew: boolean },
): Promise<ToolResult> {
  const { result, is_error, content_items } = await turn.ask(
    'tool.call',
    { call_id: id, name, arguments: args },
    { key: `tool.call ${id}`, timeoutMs, anew },
  )
  return {
    call_id: id,
    result,
    status: is_error ? 'failed' : 'completed',
    is_error: is_error ?? false,
    ...(content_items && { content_items }),
  }
}

function answeredBefore({ id }: ToolCall, { content = '', content_items }: Message): ToolResult {
  return { call_id: id, result: content, status: 'completed', is_error: false, ...(content_items && { content_items }) }
}
