/** Tools that a client brings: its files and terminals, and the MCP servers that it names. Agents see them as tools of the client. */
import type { ToolOutput } from '../../core/ports/skill.ts'
import type { GuardedHttp } from '../../core/ports/http.ts'
import type { Log } from '../../core/ports/transport.ts'
import type { ToolCall } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import { isRecord, type Slot } from '../../protocol/json.ts'
import type { ToolDefinition } from '../../protocol/tools.ts'
import { ExitAnswer, FileAnswer, OutputAnswer, parse, TerminalAnswer, type ClientCapabilities, type McpServer } from './schema.ts'

/** How MCP servers are reached, which takes a runtime that can. */
export type ConnectTools = (server: McpServer, context: McpContext) => Promise<McpTools>

export interface McpContext {
  readonly log: Log
  /** Whoever asks is the user of this machine: programs are started for him, and any address is called. */
  readonly local: boolean
  /** Else addresses are called through this, and no program is started. */
  readonly outbound: GuardedHttp | undefined
}

export interface McpTools {
  /** Those of this moment. */
  readonly tools: () => readonly GivenTool[]
  close(): Promise<void>
}

export interface GivenTool {
  readonly definition: ToolDefinition
  run(args: Readonly<Slot>, context: GivenContext): Promise<unknown>
}

export interface GivenContext {
  readonly callId: string
  readonly signal: AbortSignal
  progress(text: string): void
}

export interface SessionToolsOptions {
  readonly capabilities: ClientCapabilities | undefined
  readonly sessionId: string
  readonly cwd: string
  readonly servers: readonly McpTools[]
  readonly ask: (method: string, params: Slot, signal?: AbortSignal) => Promise<unknown>
  /** A call is at work in this terminal of the client's. */
  readonly onTerminal: (callId: string, terminalId: string) => void
}

export interface ToolAnswer {
  readonly result: string
  readonly is_error?: boolean
  readonly content_items?: ToolOutput['content_items']
}

/** Bytes of a terminal's output that a client keeps. */
const OUTPUT = 256 * 1024

const object = (properties: Slot, required: readonly string[]): Slot => ({ type: 'object', properties, required })
const string = (description: string): Slot => ({ type: 'string', description })

export class SessionTools {
  readonly #options: SessionToolsOptions
  readonly #own: ReadonlyMap<string, GivenTool>

  constructor(options: SessionToolsOptions) {
    this.#options = options
    this.#own = new Map(this.#clientTools().map((tool) => [tool.definition.function.name, tool]))
  }

  /** All but those whose names the agent itself has. */
  definitions(taken: readonly string[]): ToolDefinition[] {
    const names = new Set(taken)
    return [...this.#all()].flatMap(([name, { definition }]) => (names.has(name) ? [] : [definition]))
  }

  has(name: string): boolean {
    return this.#all().has(name)
  }

  /** What is wrong is an answer too: the model reads it. */
  async call({ name, arguments: args }: ToolCall, context: GivenContext): Promise<ToolAnswer> {
    try {
      const given: unknown = JSON.parse(args.trim() === '' ? '{}' : args)
      if (!isRecord(given)) throw new UampError('invalid_request', 'The arguments must be a JSON object')
      const output = await this.#all().get(name)?.run(given, context)
      return answerOf(output)
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : String(thrown)
      return { result: JSON.stringify({ error: { message } }), is_error: true }
    }
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#options.servers.map((server) => server.close()))
  }

  #all(): ReadonlyMap<string, GivenTool> {
    const { servers } = this.#options
    if (servers.length === 0) return this.#own
    const all = new Map(this.#own)
    for (const tool of servers.flatMap(({ tools }) => tools()))
      if (!all.has(tool.definition.function.name)) all.set(tool.definition.function.name, tool)
    return all
  }

  /** ACP, File System and Terminal: none of these methods is called unless the client has it. */
  #clientTools(): GivenTool[] {
    const { capabilities, cwd } = this.#options
    const path = string(`The absolute path of the file. The project is in ${cwd}`)
    const tools: GivenTool[] = []
    if (capabilities?.fs?.readTextFile) {
      const line = { type: 'integer', description: 'The first line to read, from 1' }
      const limit = { type: 'integer', description: 'How many lines to read' }
      tools.push({
        definition: define('read_text_file', "Reads a text file of the user's project", object({ path, line, limit }, ['path'])),
        run: async (args, { signal }) => parse(FileAnswer, await this.#ask('fs/read_text_file', args, signal)).content,
      })
    }
    if (capabilities?.fs?.writeTextFile) {
      const content = string('The whole new content')
      tools.push({
        definition: define(
          'write_text_file',
          "Writes a text file of the user's project, over what was there",
          object({ path, content }, ['path', 'content']),
        ),
        run: async (args, { signal }) => {
          await this.#ask('fs/write_text_file', args, signal)
          return 'Written'
        },
      })
    }
    if (capabilities?.terminal) {
      const args = { type: 'array', items: { type: 'string' } }
      const parameters = object({ command: string('The program'), args, cwd: string(`Where it runs. Default: ${cwd}`) }, ['command'])
      tools.push({
        definition: define('run_command', "Runs a program in a terminal of the user's, and gives what it printed", parameters),
        run: (input, context) => this.#run(input, context),
      })
    }
    return tools
  }

  async #run(input: Readonly<Slot>, { callId, signal }: GivenContext): Promise<string> {
    const { cwd, onTerminal } = this.#options
    const request = { cwd, outputByteLimit: OUTPUT, ...input }
    const { terminalId } = parse(TerminalAnswer, await this.#ask('terminal/create', request, signal))
    // Let go of in any case, which also ends what runs in it (ACP, Terminals).
    const release = (): void => void this.#ask('terminal/release', { terminalId }).catch(() => undefined)
    try {
      onTerminal(callId, terminalId)
      const { exitCode, signal: by } = parse(ExitAnswer, await this.#ask('terminal/wait_for_exit', { terminalId }, signal))
      const { output, truncated } = parse(OutputAnswer, await this.#ask('terminal/output', { terminalId }, signal))
      const end = by ? `ended by ${by}` : `exit code ${exitCode ?? 'unknown'}`
      return `${truncated ? '[the beginning is cut off]\n' : ''}${output}\n[${end}]`
    } finally {
      release()
    }
  }

  #ask(method: string, params: Readonly<Slot>, signal?: AbortSignal): Promise<unknown> {
    const { ask, sessionId } = this.#options
    return ask(method, { sessionId, ...params }, signal)
  }
}

function define(name: string, description: string, parameters: Slot): ToolDefinition {
  return { type: 'function', function: { name, description, parameters } }
}

function answerOf(output: unknown): ToolAnswer {
  if (typeof output === 'string') return { result: output }
  if (isRecord(output) && typeof output['text'] === 'string') {
    const { text, content_items } = output as unknown as ToolOutput
    return { result: text, ...(content_items && { content_items }) }
  }
  return { result: JSON.stringify(output ?? null) }
}
