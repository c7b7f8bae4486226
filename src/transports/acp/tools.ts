/** Tools that a client brings: its files and terminals, and the MCP servers that it names. Agents see them as tools of the client. */
import type { GuardedHttp } from '../../core/ports/http.ts'
import type { Tool, ToolContext } from '../../core/ports/skill.ts'
import type { Host, Log } from '../../core/ports/transport.ts'
import { parseArguments, resultOf } from '../../core/tool-call.ts'
import type { ToolCall } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import type { EventOf, Unsent } from '../../protocol/events.ts'
import type { Slot } from '../../protocol/json.ts'
import { RPC, RpcError } from '../../wire/json-rpc.ts'
import { parseParams } from '../../wire/rpc-params.ts'
import { ExitAnswer, FileAnswer, OutputAnswer, TerminalAnswer, type ClientCapabilities, type McpServer } from './schema.ts'

/** How MCP servers are reached, which takes a runtime that can. */
export type ConnectTools = (server: McpServer, context: McpContext) => Promise<McpTools>

interface McpContext {
  readonly log: Log
  /** Whoever asks is the user of this machine: programs are started for him, and any address is called. */
  readonly local: boolean
  /** Else addresses are called through this, and no program is started. */
  readonly outbound: GuardedHttp | undefined
}

export interface McpTools {
  /** Those of this moment. They run beside any turn, so they look at none. */
  readonly tools: readonly Tool[]
  close(): Promise<void>
}

export interface McpOptions {
  readonly host: Pick<Host, 'log' | 'outbound'>
  readonly local: boolean
  readonly connectTools: ConnectTools
}

/** One that cannot be reached is left out: it is no reason not to talk. One that is not to be reached is refused. */
export async function connectServers(given: readonly McpServer[], { host, local, connectTools }: McpOptions): Promise<McpTools[]> {
  const { log, outbound } = host
  const program = local ? undefined : given.find((server) => 'command' in server)
  if (program) throw new RpcError(RPC.invalidParams, `"${program.name}": programs are not started for clients over the network`)
  const each = given.map(async (server) => {
    try {
      if (server.type === 'sse')
        throw new UampError('not_supported', `The MCP server "${server.name}" speaks in a way that is not known here`)
      return [await connectTools(server, { log, local, outbound })]
    } catch (error) {
      log('warn', 'An MCP server of a client is left out', { server: server.name, error })
      return []
    }
  })
  return (await Promise.all(each)).flat()
}

export interface ClientToolsOptions {
  readonly cwd: string
  /** Asks the client something about this session. */
  readonly ask: (method: string, params: Slot, signal?: AbortSignal) => Promise<unknown>
  /** A call is at work in this terminal of the client's. */
  readonly onTerminal: (callId: string, terminalId: string) => void
}

/** Bytes of a terminal's output that a client keeps. */
const OUTPUT = 256 * 1024

/** ACP, File System and Terminal: none of these methods is called unless the client has it. */
export function clientTools({ fs, terminal }: ClientCapabilities, { cwd, ask, onTerminal }: ClientToolsOptions): readonly Tool[] {
  const path = string(`The absolute path of the file. The project is in ${cwd}`)
  const line = { type: 'integer', description: 'The first line to read, from 1' }
  const limit = { type: 'integer', description: 'How many lines to read' }
  const content = string('The whole new content')
  const command = { command: string('The program'), args: ARGUMENTS, cwd: string(`Where it runs. Default: ${cwd}`) }
  const tools: readonly (Tool & { readonly there: unknown })[] = [
    {
      there: fs?.readTextFile,
      name: 'read_text_file',
      description: "Reads a text file of the user's project",
      parameters: { type: 'object', properties: { path, line, limit }, required: ['path'] },
      run: async (args, { signal }) => parseParams(FileAnswer, await ask('fs/read_text_file', args, signal)).content,
    },
    {
      there: fs?.writeTextFile,
      name: 'write_text_file',
      description: "Writes a text file of the user's project, over what was there",
      parameters: { type: 'object', properties: { path, content }, required: ['path', 'content'] },
      run: (args, { signal }) => ask('fs/write_text_file', args, signal).then(() => 'Written'),
    },
    {
      there: terminal,
      name: 'run_command',
      description: "Runs a program in a terminal of the user's, and gives what it printed",
      parameters: { type: 'object', properties: command, required: ['command'] },
      run: async (args, { callId, signal }) => {
        const created = await ask('terminal/create', { cwd, outputByteLimit: OUTPUT, ...args }, signal)
        const { terminalId } = parseParams(TerminalAnswer, created)
        try {
          onTerminal(callId, terminalId)
          const { exitCode, signal: by } = parseParams(ExitAnswer, await ask('terminal/wait_for_exit', { terminalId }, signal))
          const { output, truncated } = parseParams(OutputAnswer, await ask('terminal/output', { terminalId }, signal))
          const end = by ? `ended by ${by}` : `exit code ${exitCode ?? 'unknown'}`
          return `${truncated ? '[the beginning is cut off]\n' : ''}${output}\n[${end}]`
        } finally {
          // In any case, which also ends what runs in it (ACP, Terminals).
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

/** What comes of a call. What is wrong is a result too: the model reads it. */
export async function resultBy(tool: Tool, call: ToolCall, context: Omit<ToolContext, 'turn'>): Promise<Unsent<EventOf<'tool.result'>>> {
  const answer = { type: 'tool.result', call_id: call.id } as const
  try {
    const { result, content_items } = resultOf(call, await tool.run(parseArguments(call), context as ToolContext), Infinity)
    return { ...answer, result, content_items }
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : String(thrown)
    return { ...answer, result: JSON.stringify({ error: { message } }), is_error: true }
  }
}
