import process from 'node:process'
import {
  Client,
  SdkHttpError,
  StreamableHTTPClientTransport,
  type CallToolResult,
  type RequestOptions,
  type Tool as McpTool,
  type Transport,
} from '@modelcontextprotocol/client'
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { fetchHttp } from '../../core/http/fetch-http.ts'
import { mistakesIn, type JsonSchema } from '../../core/tools/json-schema.ts'
import type { HttpClient } from '../../core/ports/http.ts'
import { redactedError } from '../../core/secrets/redaction.ts'
import { Secrets, secretsOf } from '../../core/secrets/secrets.ts'
import { UampError } from '../../protocol/errors.ts'
import { UAMP_VERSION } from '../../protocol/version.ts'
import { fetchOver, type McpBounds } from './http-fetch.ts'
import { Program } from './program.ts'

/** A program that speaks over standard input and output, or the address of a server that speaks over HTTP. */
export type McpServer =
  | {
      readonly command: string
      readonly args?: readonly string[]
      /** Added to a few harmless variables. The program inherits nothing else, and so none of our keys. */
      readonly env?: Readonly<Record<string, string>>
      readonly cwd?: string
    }
  | {
      readonly url: string
      readonly headers?: Readonly<Record<string, string>>
      /** For an address that a client named: the client to call it with, and the bounds of its answers. */
      readonly through?: { readonly http: HttpClient; readonly bounds: McpBounds }
    }

/** The most pages of tools that a server may send, and the characters of its error output that are kept. */
const PAGES = 64
const COMPLAINTS = 2000
/** Bounds of servers that the operator chose. The library bounds programs itself. */
const BOUNDS: McpBounds = { answerBytes: 16 * 1024 * 1024, answerMs: 60 * 60_000 }

export interface ConnectionOptions {
  readonly name: string
  readonly server: McpServer
  readonly timeoutMs: number
  /** Called when the server's tools have changed. */
  readonly onTools: (tools: readonly McpTool[]) => void
}

/** One call of a tool. */
export interface McpCall {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  /** How often the request was passed on, this time included. */
  readonly hops: number
}

/** A connection to one server. When it is lost, the next call connects again. */
export class McpConnection {
  readonly #options: ConnectionOptions
  #client: Promise<Client> | undefined
  /** The client that `#client` resolves to. */
  #newest: Client | undefined
  readonly #closed = new AbortController()
  /** The secrets that the server gets. */
  readonly secrets: readonly string[]

  constructor(options: ConnectionOptions) {
    this.#options = options
    const { server } = options
    this.secrets = 'url' in server ? secretsOf({ headers: server.headers, urls: [server.url] }) : secretsOf({ program: server })
  }

  /** Removes secrets that the server may have repeated: models and clients see the error. */
  clean(thrown: unknown): unknown {
    return redactedError(thrown, new Secrets(this.secrets))
  }

  /** The server's instructions to models. */
  async instructions(): Promise<string | undefined> {
    return (await this.#connected()).getInstructions()
  }

  async call({ name, args, hops }: McpCall, options: RequestOptions): Promise<CallToolResult> {
    const params = { name, arguments: { ...args }, _meta: { uamp: { hops } } }
    const ask = async (): Promise<CallToolResult> => (await this.#connected()).callTool(params, options)
    try {
      return await ask()
    } catch (error) {
      // 404: the server has forgotten the session, and has run nothing. A new session will do.
      if (!(error instanceof SdkHttpError) || error.status !== 404) throw error
      void this.#newest?.close().catch(() => undefined)
      this.#client = undefined
      return ask()
    }
  }

  async close(): Promise<void> {
    this.#closed.abort()
    const client = await this.#client?.catch(() => undefined)
    await client?.close()
  }

  #connected(): Promise<Client> {
    if (this.#closed.signal.aborted) throw new UampError('not_found', `The connection to the MCP server "${this.#options.name}" is closed`)
    if (this.#client) return this.#client
    const connecting = this.#connect()
    this.#client = connecting
    // The next call tries again.
    connecting.catch(() => (this.#client = undefined))
    return connecting
  }

  async #connect(): Promise<Client> {
    const { name, server, timeoutMs, onTools } = this.#options
    const client = new Client(
      { name: 'uamp', version: UAMP_VERSION },
      { jsonSchemaValidator: { getValidator: validator }, listMaxPages: PAGES },
    )
    const { transport, complaints } = transportTo(server)
    this.#newest = client
    client.onclose = () => {
      if (this.#newest === client) this.#client = undefined
    }
    // Each request reports its own errors.
    client.onerror = () => undefined
    client.setNotificationHandler('notifications/tools/list_changed', async () => onTools(await listTools(client, timeoutMs)))
    const { signal } = this.#closed
    try {
      await client.connect(transport, { timeout: timeoutMs, signal })
      onTools(await listTools(client, timeoutMs, signal))
      return client
    } catch (cause) {
      await transport.close().catch(() => undefined)
      const said = complaints() || (cause instanceof Error ? cause.message : String(cause))
      throw this.clean(new UampError('provider_error', `The MCP server "${name}" could not be reached: ${said}`, { cause }))
    }
  }
}

function transportTo(server: McpServer): { transport: Transport; complaints: () => string } {
  if ('url' in server) {
    const { url, headers, through: { http, bounds } = { http: fetchHttp(), bounds: BOUNDS } } = server
    let cut = ''
    const onCut = ({ message }: Error): void => {
      cut = message
      void transport.close().catch(() => undefined)
    }
    const options = { requestInit: { headers: { ...headers } }, fetch: fetchOver(http, bounds, onCut) }
    const transport = new StreamableHTTPClientTransport(new URL(url), options)
    return { transport, complaints: () => cut }
  }
  const { command, args = [], env, cwd } = server
  let said = ''
  const onComplaint = (text: string): void => void (said = (said + text).slice(-COMPLAINTS))
  const all = { ...getDefaultEnvironment(), ...env }
  // Windows has no process groups, and finds programs in another way.
  if (process.platform === 'win32') {
    const transport = new StdioClientTransport({ command, args: [...args], env: all, ...(cwd !== undefined && { cwd }), stderr: 'pipe' })
    transport.stderr?.on('data', (chunk: unknown) => onComplaint(String(chunk)))
    return { transport, complaints: () => said.trim() }
  }
  return { transport: new Program({ command, args, env: all, cwd, onComplaint }), complaints: () => said.trim() }
}

async function listTools(client: Client, timeout: number, signal?: AbortSignal): Promise<McpTool[]> {
  return (await client.listTools({}, { timeout, cacheMode: 'refresh', ...(signal && { signal }) })).tools
}

/** Interprets the schema instead of compiling it, because it comes from a stranger. */
function validator<T>(schema: object) {
  return (input: unknown) => {
    const mistakes = mistakesIn(schema as JsonSchema, input)
    return mistakes.length === 0
      ? { valid: true as const, data: input as T, errorMessage: undefined }
      : { valid: false as const, data: undefined, errorMessage: mistakes.join('; ') }
  }
}
