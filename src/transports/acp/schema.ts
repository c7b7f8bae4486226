/** What clients of ACP 1 send. What is not named here, `_meta` apart, is none of our business. */
import * as z from 'zod/mini'
import { explain } from '../../protocol/explain.ts'
import { list, Slot } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { RPC, RpcError } from '../../wire/json-rpc.ts'

const meta = { _meta: z.nullish(Slot) }
const id = z.string().check(z.maxLength(limits.idLength))
const flag = z.nullish(z.boolean())
const text = z.nullish(z.string())

export const ContentBlock = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.literal('image'), data: z.string(), mimeType: z.string(), uri: text }),
  z.object({ type: z.literal('audio'), data: z.string(), mimeType: z.string() }),
  z.object({ type: z.literal('resource_link'), uri: z.string(), name: z.string(), mimeType: text }),
  z.object({
    type: z.literal('resource'),
    resource: z.union([
      z.object({ uri: z.string(), text: z.string(), mimeType: text }),
      z.object({ uri: z.string(), blob: z.string(), mimeType: text }),
    ]),
  }),
])
export type ContentBlock = z.infer<typeof ContentBlock>

export const ClientCapabilities = z.object({
  fs: z.nullish(z.object({ readTextFile: flag, writeTextFile: flag })),
  terminal: flag,
  session: z.nullish(z.object({ notices: z.nullish(Slot) })),
  ...meta,
})
export type ClientCapabilities = z.infer<typeof ClientCapabilities>

export const Initialize = z.object({ protocolVersion: z.number(), clientCapabilities: z.nullish(ClientCapabilities) })

const pairs = list(z.object({ name: z.string(), value: z.string() }), limits.list)
const McpServer = z.union(
  [
    z.object({ type: z.enum(['http', 'sse']), name: z.string(), url: z.string(), headers: pairs }),
    z.object({ type: z.optional(z.literal('stdio')), name: z.string(), command: z.string(), args: z.array(z.string()), env: pairs }),
  ],
  'must be an MCP server: { name, command, args, env } or { type: "http", name, url, headers }',
)
export type McpServer = z.infer<typeof McpServer>

/** ACP, Session setup: paths are absolute, and may be those of another system than ours. */
const Folder = z.string().check(z.maxLength(4096), z.regex(/^(\/|[A-Za-z]:[\\/]|\\\\)/, 'must be an absolute path'))
/** Servers of tools that one session may bring. */
const mcpServers = list(McpServer, 32)

export const NewSession = z.object({ cwd: Folder, additionalDirectories: z.nullish(list(Folder, 64)), mcpServers, ...meta })
export const LoadSession = z.object({
  sessionId: id,
  cwd: Folder,
  additionalDirectories: z.nullish(list(Folder, 64)),
  mcpServers: z.nullish(mcpServers),
})
export const ListSessions = z.object({ cwd: z.nullish(z.string()), cursor: text })
export const OfSession = z.object({ sessionId: id })
export const SetMode = z.object({ sessionId: id, modeId: z.string() })
export const SetOption = z.object({ sessionId: id, configId: z.string(), value: z.union([z.string(), z.boolean()]) })
/** UAMP transports, Payment handling, ACP: `payment_token` stands beside the prompt; newer clients strip it, and have `_meta`. */
export const Prompt = z.object({ sessionId: id, prompt: list(ContentBlock, limits.list), payment_token: text, ...meta })
export const CancelRequest = z.object({ requestId: z.union([z.string(), z.number(), z.null()]) })
export const Authenticate = z.object({ methodId: z.string() })

export const PermissionAnswer = z.object({
  outcome: z.discriminatedUnion('outcome', [
    z.object({ outcome: z.literal('cancelled') }),
    z.object({ outcome: z.literal('selected'), optionId: z.string() }),
  ]),
})
export const FileAnswer = z.object({ content: z.string() })
export const TerminalAnswer = z.object({ terminalId: id })
export const OutputAnswer = z.object({ output: z.string(), truncated: z.boolean() })
export const ExitAnswer = z.object({ exitCode: z.nullish(z.number()), signal: text })

/** UAMP transports, ACP: Chat/Submit and Tools. */
export const Submit = z.object({
  messages: list(z.object({ role: z.enum(['system', 'user', 'assistant']), content: z.string() }), limits.messages).check(z.minLength(1)),
  payment_token: text,
})
export const CallTool = z.object({ name: z.string(), arguments: z.nullish(Slot) })

/** Throws -32602 with the field that is wrong, and what it should be. */
export function parse<T extends z.ZodMiniType>(schema: T, value: unknown): z.output<T> {
  const result = z.safeParse(schema, value ?? {}, { error: explain })
  if (result.success) return result.data
  const [issue] = result.error.issues
  const field = issue?.path.join('.') ?? ''
  throw new RpcError(RPC.invalidParams, `${field === '' ? 'params' : `"${field}"`} ${issue?.message ?? 'is wrong'}`, { field })
}
