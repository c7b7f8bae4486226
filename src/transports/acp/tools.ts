/** Tools that a client brings: its files and terminals, and the MCP servers that it names. Agents see them as client tools. */
import type { GuardedHttp } from '../../core/ports/http.ts'
import type { Tool, ToolContext } from '../../core/ports/skill.ts'
import type { Trace } from '../../core/ports/trace.ts'
import type { Logger } from '../../core/ports/transport.ts'
import { parseArguments, resultOf } from '../../core/tools/tool-call.ts'
import type { ToolCall } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import type { EventOf, Unsent } from '../../protocol/events.ts'
import type { Slot } from '../../protocol/json.ts'
import { parseParams } from '../../wire/json-rpc.ts'
import type { ConnectionOptions } from './connection.ts'
import * as schema from './schema.ts'

/** How to reach MCP servers, which not every runtime can. */
export type ConnectTools = (server: schema.McpServer, context: McpContext) => Promise<McpTools>

interface McpContext {
  readonly log: Logger
  /** The caller is the user of this machine: programs are started for them, and any address is called. */
  readonly local: boolean
  /** For other callers: the only way to call an address. No program is started for them. */
  readonly outbound: GuardedHttp | undefined
  /** Aborted when the client leaves: servers that are still starting are ended. */
  readonly signal: AbortSignal
}

export interface McpTools {
  /** The tools at this moment. They run outside a turn: of one they may use the trace, and nothing else. */
  readonly tools: readonly Tool[]
  close(): Promise<void>
}

type McpOptions = Pick<ConnectionOptions, 'host' | 'local' | 'connectTools' | 'caller'> & Pick<McpContext, 'signal'>

/** A server that a session does without, and why. */
export interface LeftOut {
  readonly name: string
  readonly reason: string
}

/** Where a session works. */
export interface Folders {
  readonly cwd: string
  readonly additionalDirectories?: readonly string[] | null | undefined
}

/** What a client brings to a session. */
export interface Equipment {
  readonly own: schema.ClientTools
  readonly servers: readonly McpTools[]
  readonly leftOut: readonly LeftOut[]
}

/** Leaves out servers that cannot or must not be reached, as the agent can talk without them. */
export async function connectServers(
  given: readonly schema.McpServer[],
  { host, local, connectTools, caller, signal }: McpOptions,
): Promise<{ readonly servers: readonly McpTools[]; readonly leftOut: readonly LeftOut[] }> {
  const { log, outbound } = host
  const servers: McpTools[] = []
  const leftOut: LeftOut[] = []
  const each = given.map(async (server) => {
    try {
      if (server.type === 'sse')
        throw new UampError('not_supported', `The MCP server "${server.name}" uses SSE, which is not supported: use HTTP`)
      if (!local && 'command' in server) throw new UampError('forbidden', 'Programs are not started for clients over the network')
      servers.push(await connectTools(server, { log, local, outbound, signal }))
    } catch (error) {
      if (signal.aborted) return
      log('warn', 'Left out an MCP server of a client', { server: server.name, error, ...caller.trace?.fields })
      leftOut.push({ name: server.name, reason: UampError.from(error).message })
    }
  })
  await Promise.all(each)
  return { servers, leftOut }
}

/** ACP, notice: tells the user of a server that the session does without. */
export function leftOutNotice({ name, reason }: LeftOut): Slot {
  return { sessionUpdate: 'notice', severity: 'warning', title: `The MCP server "${name}" was left out`, description: reason }
}

/** The method by which a client's own tools are called. */
export const TOOL_METHOD = '_uamp/tool'

/** Tools that the client runs itself. */
export function ownTools({ tools }: schema.ClientTools, ask: ClientToolsOptions['ask']): readonly Tool[] {
  return tools.map(({ server, name, description, parameters = { type: 'object' } }) => ({
    name,
    ...(description !== undefined && { description }),
    parameters,
    run: async (args, { signal }) => {
      const answer = parseParams(schema.ToolAnswer, await ask(TOOL_METHOD, { server, name, arguments: args }, signal))
      if (answer.is_error) throw new Error(answer.result)
      return { text: answer.result, data: undefined, ...(answer.content_items && { content_items: answer.content_items }) }
    },
  }))
}

export interface ClientToolsOptions {
  /** The folder of the session. */
  readonly cwd: string
  /** Asks the client something about this session. */
  readonly ask: (method: string, params: Slot, signal?: AbortSignal) => Promise<unknown>
  /** A call runs in this terminal of the client's. */
  readonly onTerminal: (callId: string, terminalId: string) => void
}

/** Bytes of a terminal's output that a client keeps. */
const OUTPUT = 256 * 1024

/** ACP, File System and Terminal: a method is called only if the client has it. */
export function clientTools({ fs, terminal }: schema.ClientCapabilities, { cwd, ask, onTerminal }: ClientToolsOptions): readonly Tool[] {
  const file = string(`The absolute path of the file. The project is in ${cwd}`)
  const line = { type: 'integer', description: 'The first line to read, from 1' }
  const limit = { type: 'integer', description: 'How many lines to read' }
  const content = string('The whole new content')
  const command = { command: string('The program'), args: ARGUMENTS, cwd: string(`Where it runs. Default: ${cwd}`) }
  const tools: readonly (Tool & { readonly there: unknown })[] = [
    {
      there: fs?.readTextFile,
      name: 'read_text_file',
      description: "Reads a text file of the user's project",
      parameters: { type: 'object', properties: { path: file, line, limit }, required: ['path'] },
      run: async (args, { signal }) => {
        const { path, line, limit } = parseParams(schema.ReadFile, args)
        const place = { path: schema.absolute(path, cwd), ...(line != null && { line }), ...(limit != null && { limit }) }
        return parseParams(schema.FileAnswer, await ask('fs/read_text_file', place, signal)).content
      },
    },
    {
      there: fs?.writeTextFile,
      name: 'write_text_file',
      description: "Writes a text file of the user's project, over what was there",
      parameters: { type: 'object', properties: { path: file, content }, required: ['path', 'content'] },
      run: async (args, { signal }) => {
        const { path, content } = parseParams(schema.WriteFile, args)
        await ask('fs/write_text_file', { path: schema.absolute(path, cwd), content }, signal)
        return 'Written'
      },
    },
    {
      there: terminal,
      name: 'run_command',
      description: "Runs a program in a terminal of the user's, and gives what it printed",
      parameters: { type: 'object', properties: command, required: ['command'] },
      run: async (args, { callId, signal }) => {
        const { command, args: given, cwd: folder } = parseParams(schema.RunCommand, args)
        const program = { command, args: given ?? [], cwd: folder ? schema.absolute(folder, cwd) : cwd, outputByteLimit: OUTPUT }
        const { terminalId } = parseParams(schema.TerminalAnswer, await ask('terminal/create', program, signal))
        try {
          onTerminal(callId, terminalId)
          const { exitCode, signal: by } = parseParams(schema.ExitAnswer, await ask('terminal/wait_for_exit', { terminalId }, signal))
          const { output, truncated } = parseParams(schema.OutputAnswer, await ask('terminal/output', { terminalId }, signal))
          const end = by ? `ended by ${by}` : `exit code ${exitCode ?? 'unknown'}`
          return `${truncated ? '[the beginning is cut off]\n' : ''}${output}\n[${end}]`
        } finally {
          // Always: this also ends what runs in it (ACP, Terminals).
          ask('terminal/release', { terminalId }).catch(() => undefined)
        }
      },
    },
  ]
  return tools.filter(({ there }) => there)
}

const ARGUMENTS = { type: 'array', items: { type: 'string' } }

function string(description: string): Slot {
  return { type: 'string', description }
}

export async function closeAll(servers: readonly McpTools[]): Promise<void> {
  await Promise.allSettled(servers.map((server) => server.close()))
}

/** The result of a call. A failure is a result too, which the model reads. */
export async function resultBy(
  tool: Tool,
  call: ToolCall,
  { trace, ...context }: Pick<ToolContext, 'callId' | 'signal' | 'progress'> & { readonly trace: Trace | undefined },
): Promise<Unsent<EventOf<'tool.result'>>> {
  const answer = { type: 'tool.result', call_id: call.id } as const
  try {
    const output = await tool.run(parseArguments(call), { ...context, turn: { trace } } as ToolContext)
    const { result, content_items } = resultOf(call, output, Infinity)
    return { ...answer, result, content_items }
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : String(thrown)
    return { ...answer, result: JSON.stringify({ error: { message } }), is_error: true }
  }
}

/** Stands for a tool that was offered and is gone since, for instance with its server: a call of it says so. */
export function goneTool(name: string): Tool {
  return {
    name,
    run: () => {
      throw new UampError('not_found', `The client has no tool "${name}" any more`)
    },
  }
}

/** Of two tools with one name, the first counts. */
export function byName(tools: readonly Tool[]): ReadonlyMap<string, Tool> {
  const named = new Map<string, Tool>()
  for (const tool of tools) if (!named.has(tool.name)) named.set(tool.name, tool)
  return named
}
