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

/** A program that speaks over its standard input and output, or the address of one that speaks over HTTP. */
export type McpServer =
  | {
      readonly command: string
      readonly args?: readonly string[]
      /** Beside a few harmless variables of ours; nothing else is inherited, so no key of ours either. */
      readonly env?: Readonly<Record<string, string>>
      readonly cwd?: string
    }
  | {
      readonly url: string
      readonly headers?: Readonly<Record<string, string>>
      /** What it is called with, and how much it may send, where it is a stranger's address. */
      readonly through?: { readonly http: HttpClient; readonly bounds: McpBounds }
    }

/** Pages of its tools that a server may send, and characters of its complaints that are kept. */
const PAGES = 64
const COMPLAINTS = 2000
/** What a server that the operator has chosen may send over HTTP. Programs have a similar bound, which is the library's. */
const BOUNDS: McpBounds = { answerBytes: 16 * 1024 * 1024, answerMs: 60 * 60_000 }

export interface ConnectionOptions {
  readonly name: string
  readonly server: McpServer
  readonly timeoutMs: number
  /** The server has other tools now. */
  readonly onTools: (tools: readonly McpTool[]) => void
}

/** A connection to one server, made again by the next call when it was lost. */
export class McpConnection {
  readonly #options: ConnectionOptions
  #client: Promise<Client> | undefined
  /** The one that `#client` is or becomes. */
  #newest: Client | undefined
  readonly #closed = new AbortController()
  /** What the server is shown. */
  readonly secrets: readonly string[]

  constructor(options: ConnectionOptions) {
    this.#options = options
    const { server } = options
    this.secrets = 'url' in server ? secretsOf({ headers: server.headers, urls: [server.url] }) : secretsOf({ program: server })
  }

  /** The error without what the server was shown and may have repeated: it is told to models and to clients. */
  clean(thrown: unknown): unknown {
    return redactedError(thrown, new Secrets(this.secrets))
  }

  /** What the server tells models about itself. */
  async instructions(): Promise<string | undefined> {
    return (await this.#connected()).getInstructions()
  }

  async call(name: string, args: Readonly<Record<string, unknown>>, options: RequestOptions): Promise<CallToolResult> {
    const ask = async (): Promise<CallToolResult> => (await this.#connected()).callTool({ name, arguments: { ...args } }, options)
    try {
      return await ask()
    } catch (error) {
      // The server has forgotten the session, and so has not run anything: a new one will do.
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
    // The next one tries again.
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
    // What goes wrong with a request is told to whoever made it.
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
  // There are no groups there, and programs are found in another way.
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

/** A stranger's schema is read, not compiled. */
function validator<T>(schema: object) {
  return (input: unknown) => {
    const mistakes = mistakesIn(schema as JsonSchema, input)
    return mistakes.length === 0
      ? { valid: true as const, data: input as T, errorMessage: undefined }
      : { valid: false as const, data: undefined, errorMessage: mistakes.join('; ') }
  }
}
