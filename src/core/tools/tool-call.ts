import { withIds, withoutContentUrls, type ContentItem, type ToolCall, type ToolResult } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import { isRecord, parseJson } from '../../protocol/json.ts'
import { mistakesIn } from './json-schema.ts'
import type { Turn } from '../ports/agent.ts'
import type { HttpClient } from '../ports/http.ts'
import type { Tool } from '../ports/skill.ts'
import { isStandardSchema, parseStandard } from './standard-schema.ts'
import type { TimeLimits } from './time-limits.ts'

/** Most characters of media and data in a result, beside its text. */
const BESIDE = 16 * 1024 * 1024

/** A call whose arguments are valid. `approval`: somebody must approve it first. */
export interface Prepared {
  readonly call: ToolCall
  readonly tool: Tool
  readonly args: Readonly<Record<string, unknown>>
  readonly approval: boolean
  readonly timeoutMs: number
}

/** Parses and checks the arguments. Throws an error that tells the agent what is wrong with them. */
export function prepare(
  turn: Turn,
  { call, tool, timeoutMs }: Pick<Prepared, 'call' | 'tool' | 'timeoutMs'>,
  time: TimeLimits,
): Promise<Prepared> {
  return time.within(timeoutMs, call.name, async () => {
    const args = await checkArguments(tool, parseArguments(call))
    const { needsApproval = false } = tool
    const approval = typeof needsApproval === 'function' ? await needsApproval(args, { turn, callId: call.id }) : needsApproval
    return { call, tool, args, approval, timeoutMs }
  })
}

export function parseArguments({ name, arguments: text }: ToolCall): Record<string, unknown> {
  let value: unknown
  try {
    value = parseJson(text.trim() === '' ? '{}' : text)
  } catch (cause) {
    throw new UampError('invalid_request', `The arguments of "${name}" are not JSON`, { cause })
  }
  if (!isRecord(value)) throw new UampError('invalid_request', `The arguments of "${name}" must be a JSON object`)
  return value
}

async function checkArguments({ name, parameters }: Tool, args: Record<string, unknown>): Promise<Record<string, unknown>> {
  if (!parameters) return args
  const parsed = isStandardSchema(parameters)
    ? await parseStandard(parameters, args)
    : { value: args, mistakes: mistakesIn(parameters, args, { patterns: true }) }
  const mistakes = 'mistakes' in parsed ? parsed.mistakes : []
  if (mistakes.length > 0) throw new UampError('invalid_request', `The arguments of "${name}" do not fit: ${mistakes.join('; ')}`)
  return 'value' in parsed && isRecord(parsed.value) ? parsed.value : args
}

/** Asks for approval of a call; throws when it is denied. */
export async function askApproval(turn: Turn, { name, id, arguments: args }: ToolCall): Promise<void> {
  const { approved, reason } = await turn.ask(
    'x.approval.request',
    { message: `May "${name}" run?`, tool_call: { id, name, arguments: args } },
    { key: `approval ${id}` },
  )
  if (approved) return
  if (reason === 'approval_unavailable')
    throw new UampError('approval_unavailable', `"${name}" needs approval, and nobody is there to give it`)
  throw new UampError('forbidden', `"${name}" was not allowed${reason ? `: ${reason}` : ''}`)
}

export interface RunOptions {
  readonly time: TimeLimits
  readonly resultLength: number
  readonly progress: (text: string) => void
}

/** Runs the tool within its time limit. */
export async function runTool(turn: Turn, prepared: Prepared, { time, resultLength, progress }: RunOptions): Promise<ToolResult> {
  const { call, tool, args, timeoutMs } = prepared
  const span = turn.trace?.begin('execute_tool', `execute_tool ${tool.name}`, {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': tool.name,
    'gen_ai.tool.call.id': call.id,
  })
  const run = (signal: AbortSignal): unknown => tool.run(args, { turn, callId: call.id, signal, http: guardedOf(turn.http), progress })
  try {
    const result = await time.within(timeoutMs, call.name, (signal) => (span ? span.run(() => run(signal)) : run(signal)))
    span?.end()
    return resultOf(call, result, resultLength)
  } catch (thrown) {
    span?.end(UampError.from(thrown).code)
    throw thrown
  }
}

/** Makes a result of a tool's return value. Cuts off a text that is longer than `length`. */
export function resultOf({ id, name }: ToolCall, given: unknown, length: number): ToolResult {
  const output = isToolOutput(given) ? given : undefined
  const text = output ? withoutContentUrls(output.text) : typeof given === 'string' ? given : (JSON.stringify(given) ?? 'null')
  const beside = { content_items: output?.content_items, data: output?.data }
  const size = beside.content_items || beside.data !== undefined ? JSON.stringify(beside).length : 0
  if (size > BESIDE) throw new UampError('too_large', `"${name}" returned ${size} characters of media and data; ${BESIDE} are allowed`)
  return {
    call_id: id,
    result: text.length <= length ? text : cut(text, length),
    status: 'completed',
    is_error: false,
    ...(beside.content_items && { content_items: withIds(beside.content_items, () => crypto.randomUUID()) }),
    ...(beside.data !== undefined && { data: beside.data }),
  }
}

/** The beginning of a text, with a note for the model, which would otherwise take it for the whole. */
function cut(text: string, length: number): string {
  return `${text.slice(0, length)}\n[cut off: this is the beginning, ${length} of ${text.length} characters]`
}

function isToolOutput(value: unknown): value is { text: string; content_items?: ContentItem[]; data?: unknown } {
  return isRecord(value) && typeof value['text'] === 'string' && ('content_items' in value || 'data' in value)
}

/** Makes a failed result. The message of an unknown error is included, because its author wrote it and the model needs it. */
export function failed(
  { id }: ToolCall,
  thrown: unknown,
  { length, redact = (text) => text }: { readonly length: number; readonly redact?: Turn['redact'] },
): ToolResult {
  const message = redact(thrown instanceof Error ? thrown.message : String(thrown))
  const code = thrown instanceof UampError ? thrown.code : 'tool_failed'
  const told = message.length <= length ? message : cut(message, length)
  return { call_id: id, result: JSON.stringify({ error: { code, message: told } }), status: 'failed', is_error: true }
}

/** The client for addresses that strangers name. Without one it refuses every call, because they could reach this machine's network. */
function guardedOf(http: HttpClient): HttpClient {
  return http.guarded ?? UNGUARDED
}

const UNGUARDED: HttpClient = {
  request: () => Promise.reject(new UampError('not_supported', 'This runtime cannot call addresses that others name')),
}
