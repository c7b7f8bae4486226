import type { ToolCall, ToolResult } from '../../protocol/content.ts'
import { isRecord, jsonIn, recordsIn, type Slot } from '../../protocol/json.ts'
import { toBlock } from '../../wire/acp/blocks.ts'
import { isAbsolute } from './schema.ts'

/** Calls of one response that are followed. Of further calls only the beginning and the end are shown. */
const OPEN = 256
const TITLE = 120

interface Call {
  readonly name: string
  args: string
  /** The client has the arguments so far. */
  told: boolean
}

type Tell = (update: Slot) => void

/** Tool calls as clients see them: announced with their first piece, shown whole before anything else happens, then their outcome. */
export class ToolCalls {
  readonly #tell: Tell
  readonly #hasTerminal: (id: unknown) => boolean
  readonly #open = new Map<string, Call>()
  /** Some calls have arguments that the client does not have yet. */
  unsettled = false

  constructor(tell: Tell, hasTerminal: (id: unknown) => boolean) {
    this.#tell = tell
    this.#hasTerminal = hasTerminal
  }

  /** Arguments are streamed in pieces under the id of their call. ACP has no place for pieces. */
  piece({ id, name, arguments: args }: ToolCall): void {
    const known = this.#open.get(id)
    if (known) {
      known.args += args
      known.told = false
    } else {
      if (this.#open.size < OPEN) this.#open.set(id, { name, args, told: false })
      this.#tell({ sessionUpdate: 'tool_call', toolCallId: id, title: name, name, kind: kindOf(name), status: 'pending' })
    }
    this.unsettled = true
  }

  /** The client is asked to run it, so the call is whole. */
  asked(call: ToolCall): void {
    if (!this.#open.has(call.id)) this.piece(call)
    this.settle()
  }

  /** Shows the arguments that were gathered, as something else comes next. */
  settle(): void {
    if (!this.unsettled) return
    this.unsettled = false
    for (const [id, call] of this.#open) {
      if (call.told) continue
      call.told = true
      this.#update(id, 'in_progress', shownInput(call))
    }
  }

  progress(id: string, text: string, data?: unknown): void {
    this.settle()
    this.#update(id, 'in_progress', { content: [{ type: 'content', content: { type: 'text', text } }], ...this.#ownPart(data) })
  }

  /** The client shows one of its own terminals in place of content. */
  terminal(id: string, terminalId: string): void {
    this.#update(id, 'in_progress', { content: [{ type: 'terminal', terminalId }] })
  }

  result(result: ToolResult): void {
    this.settle()
    const { call_id: id, is_error, status, data } = result
    const call = this.#open.get(id)
    this.#open.delete(id)
    const failed = is_error || status === 'failed'
    const diff = failed || !call ? [] : diffIn(call)
    const content = diff.length > 0 ? diff : contentOf(result)
    this.#update(id, failed ? 'failed' : 'completed', { content, rawOutput: parsed(result.result), ...this.#ownPart(data) })
  }

  /** The response is over. Calls that are left were answered without a result event, or never will be. */
  end(well: boolean): void {
    this.settle()
    for (const id of this.#open.keys()) this.#update(id, well ? 'completed' : 'failed')
    this.#open.clear()
  }

  /** Agents that know ACP give `content` (diffs, terminals), `locations`, `kind` and `title` under `data.acp`. */
  #ownPart(data: unknown): Slot {
    const acp = isRecord(data) ? data['acp'] : undefined
    if (!isRecord(acp)) return {}
    const { content, locations, kind, title } = acp
    const shown = recordsIn(content).filter(({ type, path, terminalId }) => {
      if (type === 'terminal') return this.#hasTerminal(terminalId)
      return type !== 'diff' || isAbsolute(path)
    })
    // The text of a call stands for terminals that this client cannot show, as when a session is loaded again.
    const replaces = Array.isArray(content) && (shown.length > 0 || !recordsIn(content).some(({ type }) => type === 'terminal'))
    return {
      ...(replaces && { content: shown }),
      ...(Array.isArray(locations) && { locations: locationsIn(locations) }),
      ...(typeof kind === 'string' && { kind }),
      ...(typeof title === 'string' && { title }),
    }
  }

  #update(toolCallId: string, status: 'in_progress' | 'completed' | 'failed', more?: Slot): void {
    this.#tell({ sessionUpdate: 'tool_call_update', toolCallId, status, ...more })
  }
}

/** A call as a question for permission shows it. */
export function shownCall({ id, name, arguments: args }: ToolCall): Slot {
  return { toolCallId: id, name, kind: kindOf(name), status: 'pending', ...shownInput({ name, args }) }
}

function shownInput(call: Pick<Call, 'name' | 'args'>): Slot {
  const rawInput = parsed(call.args === '' ? '{}' : call.args)
  const { path, line, command, query, url } = isRecord(rawInput) ? rawInput : {}
  const about = [path, command, query, url].find((value) => typeof value === 'string')
  const diff = diffIn(call)
  const locations = locationsIn([{ path, line }])
  return {
    title: about === undefined ? call.name : `${call.name}: ${String(about).split('\n')[0]?.slice(0, TITLE)}`,
    rawInput,
    ...(locations.length > 0 && { locations }),
    ...(diff.length > 0 && { content: diff }),
  }
}

/** Models write anything, but clients accept only absolute paths, and lines from 1. */
function locationsIn(given: unknown): Slot[] {
  const isLine = (value: unknown): boolean => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 0xffffffff
  return recordsIn(given).flatMap(({ path, line }) => (isAbsolute(path) ? [{ path, ...(isLine(line) && { line }) }] : []))
}

/** The arguments of a tool that writes a file are shown as a diff. */
function diffIn({ name, args }: Pick<Call, 'name' | 'args'>): Slot[] {
  const input = kindOf(name) === 'edit' ? jsonIn(args) : undefined
  if (!isRecord(input)) return []
  const { path, content, oldText, newText = content } = input
  if (!isAbsolute(path) || typeof newText !== 'string') return []
  return [{ type: 'diff', path, newText, ...(typeof oldText === 'string' && { oldText }) }]
}

function contentOf({ result, content_items = [] }: ToolResult): Slot[] {
  const blocks = [
    ...(result === '' ? [] : [{ type: 'text' as const, text: result }]),
    ...content_items.flatMap((item) => toBlock(item) ?? []),
  ]
  return blocks.map((content) => ({ type: 'content', content }))
}

const KINDS: readonly (readonly [RegExp, string])[] = [
  [/^(read|open|cat|view|get)/i, 'read'],
  [/^(write|edit|create|update|patch|apply|insert|replace)/i, 'edit'],
  [/^(delete|remove|rm)/i, 'delete'],
  [/^(move|rename|mv)/i, 'move'],
  [/^(search|find|grep|glob|list|ls)/i, 'search'],
  [/^(run|exec|shell|bash|terminal|command)/i, 'execute'],
  [/^(fetch|http|download|browse|web)/i, 'fetch'],
  [/^(think|plan|reason)/i, 'think'],
]

function kindOf(name: string): string {
  return KINDS.find(([pattern]) => pattern.test(name))?.[1] ?? 'other'
}

/** JSON, or else the text itself. */
function parsed(text: string): unknown {
  const value = jsonIn(text)
  return value === undefined ? text : value
}
