import type { ContentItem, ToolCall, ToolResult } from '../protocol/content.ts'
import { UampError } from '../protocol/errors.ts'
import type { Draft } from '../protocol/events.ts'
import { isRecord } from '../protocol/json.ts'
import type { Message } from '../protocol/message.ts'
import { AnsweredCalls } from './answered-calls.ts'
import { Channel } from './channel.ts'
import type { Turn } from './ports/agent.ts'
import type { Tool } from './ports/skill.ts'

/** Calls that one turn may make, tools that run at the same time, and how long each may take. */
const BUDGET = 64
const PARALLEL = 8
const TIMEOUT_MS = 60_000
/** Events of tools that the agent has not passed on yet. */
const UNREAD = 64

export interface ToolRunnerOptions {
  readonly tools: readonly Tool[]
  readonly budget?: number
  readonly timeoutMs?: number
}

/** Queues what clients see; `seen` is called once it is on its way to them. */
type Emit = (draft: Draft, seen?: () => void) => Promise<boolean>

/** Runs tools for one turn: yields what clients see of it, and returns each call's result, in the order of the calls. */
export type ToolRunner = (calls: readonly ToolCall[]) => AsyncGenerator<Draft, ToolResult[], void>

/**
 * Tools of the server run here, in parallel; tools that the client declared go out as `tool.call` and wait for `tool.result`.
 * A tool that fails, takes too long or does not exist gives a failed result: the agent is told, nothing is thrown.
 */
export function toolRunner(turn: Turn, { tools, budget = BUDGET, timeoutMs = TIMEOUT_MS }: ToolRunnerOptions): ToolRunner {
  const own = new Map(tools.map((tool) => [tool.name, tool]))
  const offered = new Set(turn.config.tools?.map((tool) => tool.function.name))
  const earlier = new AnsweredCalls(turn.messages)
  let left = budget

  async function call(toolCall: ToolCall, emit: Emit): Promise<ToolResult> {
    if (left-- <= 0) return failed(toolCall, new UampError('tool_budget_exceeded', `This turn may make ${budget} tool calls`))
    // The question must not overtake it.
    await new Promise<void>((resolve) => void emit({ type: 'response.delta', delta: { type: 'tool_call', tool_call: toolCall } }, resolve))
    const tool = own.get(toolCall.name)
    const byClient = offered.has(toolCall.name)
    try {
      if (byClient) return await askClient(turn, toolCall, timeoutMs)
      if (!tool) throw new UampError('not_found', `There is no tool "${toolCall.name}"`)
      return await runHere(turn, { tool, call: toolCall, timeoutMs: tool.timeoutMs ?? timeoutMs, emit })
    } catch (thrown) {
      turn.signal.throwIfAborted()
      return failed(toolCall, thrown)
    } finally {
      if (!byClient) await emit({ type: 'tool.call_done', call_id: toolCall.id })
    }
  }

  return async function* run(calls) {
    const drafts = new Channel<{ draft: Draft; seen: (() => void) | undefined }>(UNREAD)
    const emit: Emit = (draft, seen) => drafts.put({ draft, seen })
    const results: ToolResult[] = []
    let next = 0
    const worker = async (): Promise<void> => {
      for (let index = next++; index < calls.length; index = next++) {
        const toolCall = calls[index] as ToolCall
        const known = offered.has(toolCall.name) ? earlier.take(toolCall) : undefined
        // The client has both already.
        if (known) {
          results[index] = answeredBefore(toolCall, known.result)
          continue
        }
        const result = await call(toolCall, emit)
        results[index] = result
        await emit({ type: 'response.delta', delta: { type: 'tool_result', tool_result: result } })
      }
    }
    const working = Promise.all(Array.from({ length: Math.min(PARALLEL, calls.length) }, worker)).finally(() => drafts.close())
    // Awaited below; an abort in between must not count as unhandled.
    working.catch(() => undefined)
    for await (const { draft, seen } of drafts) {
      yield draft
      seen?.()
    }
    await working
    return results
  }
}

async function askClient(turn: Turn, { id, name, arguments: args }: ToolCall, timeoutMs: number): Promise<ToolResult> {
  const { result, is_error, content_items } = await turn.ask(
    'tool.call',
    { call_id: id, name, arguments: args },
    { key: `tool.call ${id}`, timeoutMs },
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

async function runHere(
  turn: Turn,
  { tool, call, timeoutMs, emit }: { tool: Tool; call: ToolCall; timeoutMs: number; emit: Emit },
): Promise<ToolResult> {
  const signal = AbortSignal.any([turn.signal, AbortSignal.timeout(timeoutMs)])
  const progress = (text: string): void =>
    void emit({ type: 'response.delta', delta: { type: 'tool_progress', tool_progress: { call_id: call.id, text } } })
  const late = new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(new UampError('timeout', `"${call.name}" took longer than ${timeoutMs} ms`)), {
      once: true,
    }),
  )
  late.catch(() => undefined)
  const given = await Promise.race([tool.run(parseArguments(call), { turn, callId: call.id, signal, progress }), late])
  const output = isToolOutput(given) ? given : undefined
  const { data, content_items } = output ?? {}
  return {
    call_id: call.id,
    result: output ? output.text : typeof given === 'string' ? given : (JSON.stringify(given) ?? 'null'),
    status: 'completed',
    is_error: false,
    ...(content_items && { content_items }),
    ...(data !== undefined && { data }),
  }
}

function parseArguments({ name, arguments: text }: ToolCall): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text === '' ? '{}' : text)
  } catch (cause) {
    throw new UampError('invalid_request', `The arguments of "${name}" are not JSON`, { cause })
  }
  if (!isRecord(value)) throw new UampError('invalid_request', `The arguments of "${name}" must be a JSON object`)
  return value
}

/** What a tool returns that has more to give than text (media, data beside it). */
function isToolOutput(value: unknown): value is { text: string; content_items?: ContentItem[]; data?: unknown } {
  return isRecord(value) && typeof value['text'] === 'string' && ('content_items' in value || 'data' in value)
}

/** An error of ours is told as it is; what an unknown one said is the tool author's own text, and the model needs it. */
function failed({ id }: ToolCall, thrown: unknown): ToolResult {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  const code = thrown instanceof UampError ? thrown.code : 'tool_failed'
  return { call_id: id, result: JSON.stringify({ error: { code, message } }), status: 'failed', is_error: true }
}
