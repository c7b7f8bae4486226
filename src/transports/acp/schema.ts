/** What clients of ACP 1 send. Other fields are ignored. */
import * as z from 'zod/mini'
import { ContentItem } from '../../protocol/content.ts'
import { isRecord, list, Slot } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { ContentBlock } from '../../wire/acp/blocks.ts'

const meta = { _meta: z.nullish(Slot) }
const id = z.string().check(z.maxLength(limits.idLength))
const flag = z.nullish(z.boolean())
const text = z.nullish(z.string())

export const ClientCapabilities = z.object({
  fs: z.nullish(z.object({ readTextFile: flag, writeTextFile: flag })),
  terminal: flag,
  session: z.nullish(z.object({ notices: z.nullish(Slot) })),
  ...meta,
})
export type ClientCapabilities = z.infer<typeof ClientCapabilities>

export const Initialize = z.object({ protocolVersion: z.number(), clientCapabilities: z.nullish(ClientCapabilities) })

const pairs = list(z.object({ name: z.string(), value: z.string() }), limits.list)
export const McpServer = z.union(
  [
    z.object({ type: z.enum(['http', 'sse']), name: z.string(), url: z.string(), headers: pairs }),
    z.object({ type: z.optional(z.literal('stdio')), name: z.string(), command: z.string(), args: z.array(z.string()), env: pairs }),
  ],
  'must be an MCP server: { name, command, args, env } or { type: "http", name, url, headers }',
)
export type McpServer = z.infer<typeof McpServer>

/** ACP, Session setup: paths are absolute, and may be those of another operating system. */
const ABSOLUTE = /^(\/|[A-Za-z]:[\\/]|\\\\)/
export const path = z.string().check(z.minLength(1), z.maxLength(4096))
const Folder = path.check(z.regex(ABSOLUTE, 'must be an absolute path'))
/** MCP servers that one session may bring. */
const mcpServers = list(McpServer, 32)

export function isAbsolute(value: unknown): value is string {
  return typeof value === 'string' && ABSOLUTE.test(value)
}

/** Clients want absolute paths; agents use paths relative to the project. */
export function absolute(path: string, cwd: string): string {
  if (ABSOLUTE.test(path)) return path
  const slash = cwd.startsWith('/') ? '/' : '\\'
  return `${cwd.replace(/[\\/]$/, '')}${slash}${path.replace(/^\.[\\/]/, '')}`
}

const folders = { cwd: Folder, additionalDirectories: z.nullish(list(Folder, 64)) }

export const NewSession = z.object({ ...folders, mcpServers, ...meta })
export const LoadSession = z.object({ sessionId: id, ...folders, mcpServers: z.nullish(mcpServers), ...meta })
/** Tools that a client runs itself, from `_meta.uamp.tools`. `server` is the client's own name for where they come from. */
export const ClientTools = z.object({
  tools: z._default(
    list(z.object({ server: z.optional(id), name: id, description: z.optional(z.string()), parameters: z.optional(Slot) }), limits.tools),
    [],
  ),
})
export type ClientTools = z.infer<typeof ClientTools>
export const ToolAnswer = z.object({
  result: z.string(),
  content_items: z.optional(list(ContentItem, limits.list)),
  is_error: z.optional(z.boolean()),
})
export const ListSessions = z.object({ cwd: z.nullish(z.string()), cursor: text })
export const OfSession = z.object({ sessionId: id })
export const SetMode = z.object({ sessionId: id, modeId: z.string() })
export const SetOption = z.object({ sessionId: id, configId: z.string(), value: z.union([z.string(), z.boolean()]) })
/** UAMP transports, Payment handling, ACP: `payment_token` stands beside the prompt. Newer clients strip that, and use `_meta`. */
export const Prompt = z.object({ sessionId: id, prompt: list(ContentBlock, limits.list), payment_token: text, ...meta })
export const CancelRequest = z.object({ requestId: z.union([z.string(), z.number(), z.null()]) })
/** The one way to sign in. */
export const AUTH_METHOD = {
  id: 'uamp',
  name: 'Already signed in',
  description: 'You are known by your token, or as the user who started the agent',
} as const
export const Authenticate = z.object({ methodId: z.literal(AUTH_METHOD.id) })

export const PermissionAnswer = z.object({
  outcome: z.discriminatedUnion('outcome', [
    z.object({ outcome: z.literal('cancelled') }),
    z.object({ outcome: z.literal('selected'), optionId: z.string() }),
  ]),
})
/** Arguments of the client's tools. Lines are counted from 1, in 32 bits. */
const line = z.nullish(z.int().check(z.minimum(1), z.maximum(0xffffffff)))
export const ReadFile = z.object({ path, line, limit: line })
export const WriteFile = z.object({ path, content: z.string() })
export const RunCommand = z.object({
  command: z.string().check(z.minLength(1)),
  args: z.nullish(list(z.string(), limits.list)),
  cwd: z.nullish(path),
})
export const FileAnswer = z.object({ content: z.string() })
export const TerminalAnswer = z.object({ terminalId: id })
export const OutputAnswer = z.object({ output: z.string(), truncated: z.boolean() })
export const ExitAnswer = z.object({ exitCode: z.nullish(z.number()), signal: text })

const PARTS = 'must be a text, or a list of content blocks: { type: "text", text }, { type: "image", data, mimeType } …'
/** UAMP transports, ACP: Chat/Submit and Tools. Content may also be blocks, as in `session/prompt`. */
export const Submit = z.object({
  messages: list(
    z.object({ role: z.enum(['system', 'user', 'assistant']), content: z.union([z.string(), list(ContentBlock, limits.list)], PARTS) }),
    limits.messages,
  ).check(z.minLength(1)),
  payment_token: text,
})
export const CallTool = z.object({ name: z.string(), arguments: z.nullish(Slot) })

/** The session that a message is about. */
export function sessionIn(params: unknown): string | undefined {
  return isRecord(params) && typeof params['sessionId'] === 'string' ? params['sessionId'] : undefined
}
