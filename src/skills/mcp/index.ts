import type { Progress, Tool as McpTool, CallToolResult } from '@modelcontextprotocol/client'
import { nextHops } from '../../core/basics/hops.ts'
import { mistakesIn, type JsonSchema } from '../../core/tools/json-schema.ts'
import { checkToolPrice, toolPriceOf } from '../../core/basics/price.ts'
import type { Skill, Tool, ToolOutput, ToolPrice } from '../../core/ports/skill.ts'
import type { StandardSchema } from '../../core/tools/standard-schema.ts'
import type { Logger } from '../../core/ports/transport.ts'
import { McpConnection, type McpServer } from './connection.ts'
import type { ContentItem } from '../../protocol/content.ts'

export type { McpServer } from './connection.ts'

const CONNECT_MS = 30_000
const CALL_MS = 60_000

export interface McpOptions {
  readonly name: string
  readonly server: McpServer
  /** Put before the names of its tools, in case two servers have a tool with the same name. */
  readonly prefix?: string
  /** Takes only these tools, by the server's own names. */
  readonly only?: readonly string[]
  /** Asks the client before a call: for all tools, or for some, by the server's own names. */
  readonly needsApproval?: boolean | readonly string[]
  /** What calls cost, by the server's own names of its tools: `{ search: '0.02' }`. */
  readonly prices?: Readonly<Record<string, string | ToolPrice>>
  /** How long a call may take. Default: 60 s. */
  readonly timeoutMs?: number
  /** How long the server may take to start and to list its tools. Default: 30 s. */
  readonly connectMs?: number
  /** Stops the start of the server. */
  readonly signal?: AbortSignal
  readonly log?: Logger
}

export interface McpSkill extends Skill {
  /** The tools that the server has now: it may get and lose some. */
  readonly tools: readonly Tool[]
  /** Ends the connection, and the program if the server is one. */
  close(): Promise<void>
}

/** The tools of an MCP server, as a skill. Rejects if the server cannot be reached; connects again if the connection is lost later. */
export async function mcpSkill(options: McpOptions): Promise<McpSkill> {
  const { name, server, prices = {}, connectMs = CONNECT_MS, signal, log = () => undefined } = options
  for (const [tool, price] of Object.entries(prices)) checkToolPrice(tool, toolPriceOf(price, undefined))
  signal?.throwIfAborted()
  const tools: Tool[] = []
  const connection: McpConnection = new McpConnection({
    name,
    server,
    timeoutMs: connectMs,
    onTools: (listed) => void tools.splice(0, tools.length, ...toolsOf(listed)),
  })

  function toolsOf(listed: readonly McpTool[]): Tool[] {
    const made = new Map<string, Tool>()
    for (const tool of listed) {
      if (options.only && !options.only.includes(tool.name)) continue
      const known = toTool(tool, options, connection)
      if (made.has(known.name)) log('warn', 'An MCP server has two tools of one name', { server: name, tool: known.name })
      else made.set(known.name, known)
    }
    return [...made.values()]
  }

  const giveUp = (): void => void connection.close()
  signal?.addEventListener('abort', giveUp, { once: true })
  const told = await connection.instructions().finally(() => signal?.removeEventListener('abort', giveUp))
  return {
    name,
    tools,
    secrets: connection.secrets,
    ...(told !== undefined && told !== '' && { prompts: [{ text: () => told }] }),
    close: () => connection.close(),
  }
}

function toTool(
  tool: McpTool,
  { prefix = '', needsApproval = false, prices = {}, timeoutMs = CALL_MS }: McpOptions,
  connection: McpConnection,
): Tool {
  const { name, title, description = title, inputSchema } = tool
  const price = Object.hasOwn(prices, name) ? prices[name] : undefined
  return {
    name: `${prefix}${name}`.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, LONGEST),
    ...(description !== undefined && { description }),
    parameters: readSchema(inputSchema),
    timeoutMs,
    ...(price !== undefined && { price: toolPriceOf(price, undefined) }),
    needsApproval: typeof needsApproval === 'boolean' ? needsApproval : needsApproval.includes(name),
    run: async (args, { turn, signal, progress }) => {
      const onprogress = (news: Progress): void => progress(describe(news))
      try {
        return toOutput(await connection.call({ name, args, hops: nextHops(turn.trace) }, { signal, timeout: timeoutMs, onprogress }))
      } catch (thrown) {
        throw connection.clean(thrown)
      }
    },
  }
}

const LONGEST = 64

/** Models see the server's schema as it is. Arguments are checked without its patterns, which come from a stranger. */
function readSchema(schema: JsonSchema): StandardSchema<unknown, unknown> {
  return {
    '~standard': {
      version: 1,
      vendor: 'uamp',
      validate: (value) => {
        const mistakes = mistakesIn(schema, value)
        return mistakes.length > 0 ? { issues: mistakes.map((message) => ({ message })) } : { value }
      },
      jsonSchema: { input: () => ({ ...schema }) },
    },
  }
}

function describe({ progress, total, message }: Progress): string {
  return message ?? (total === undefined ? String(progress) : `${progress} of ${total}`)
}

/** The result of an MCP tool. An error is thrown, so that the model reads it. */
function toOutput({ content, structuredContent, isError }: CallToolResult): ToolOutput {
  const texts: string[] = []
  const items: ContentItem[] = []
  for (const part of content) {
    switch (part.type) {
      case 'text':
        texts.push(part.text)
        break
      case 'image':
        items.push({ type: 'image', image: part.data, format: subtype(part.mimeType) })
        break
      case 'audio':
        items.push({ type: 'audio', audio: part.data, format: subtype(part.mimeType) })
        break
      case 'resource_link':
        texts.push(`${part.title ?? part.name}: ${part.uri}`)
        break
      case 'resource':
        if ('text' in part.resource) texts.push(part.resource.text)
        else items.push(file(part.resource))
    }
  }
  if (texts.length === 0 && structuredContent !== undefined) texts.push(JSON.stringify(structuredContent))
  const text = texts.join('\n')
  if (isError) throw new Error(text === '' ? 'The tool failed' : text)
  // `data` marks the object as a tool's output, even if it is undefined.
  return { text, ...(items.length > 0 && { content_items: items }), data: structuredContent }
}

function file({ uri, mimeType, blob }: { uri: string; mimeType?: string | undefined; blob: string }): ContentItem {
  const filename = uri.slice(uri.lastIndexOf('/') + 1) || 'file'
  return { type: 'file', file: blob, filename, mime_type: mimeType ?? 'application/octet-stream' }
}

/** `png` of `image/png`. */
function subtype(mime: string): string {
  return mime.slice(mime.indexOf('/') + 1)
}
