import { looksLikeJwt } from '../../auth/verify/token.ts'
import { connect, UampClientError, type Client, type ConnectOptions, type Session, type Status } from '../../client/node.ts'
import { isRecord } from '../../protocol/json.ts'
import { present } from '../../wire/fields.ts'
import type { Local } from './local.ts'
import { shown } from './target.ts'

/** The most characters of an answer that lists something. */
const LIST = 1024 * 1024
const LIST_MS = 5_000
const RECENT = 20

export interface Opened {
  readonly session: Session
  /** Leaves the session, which stays on the server. */
  leave(): void
}

export interface Wanted {
  readonly agent?: string | undefined
  /** The id of an earlier session. */
  readonly session?: string | undefined
  readonly signal: AbortSignal
  /** Told when the connection is lost, and when it is back. */
  readonly tell: (text: string) => void
}

export interface ConnectionOptions {
  readonly url: string
  /** What a user types to reach it. */
  readonly name: string
  /** The options that go with the name. */
  readonly options?: string
  readonly token?: string | undefined
  readonly local?: Local | undefined
  readonly reconnect?: ConnectOptions['reconnect'] | undefined
}

/** The way to a server, or to the agents in this process. */
export class Connection {
  readonly #url: string
  readonly #name: string
  readonly #options: string
  readonly #token: string | undefined
  readonly #reconnect: ConnectOptions['reconnect'] | undefined
  readonly #local: Local | undefined
  /** The ids of messages that were told. */
  readonly #told = new Set<unknown>()
  /** The server does not answer, and is tried again. */
  lost = false

  constructor(to: ConnectionOptions) {
    this.#reconnect = to.reconnect
    this.#url = to.url.replace(/^ws/, 'http').replace(/\/+$/, '')
    this.#name = to.name
    this.#options = to.options ?? ''
    this.#token = to.token
    this.#local = to.local
  }

  get where(): string {
    return this.#local ? this.#name : this.#url
  }

  /** Undefined if the user did not wait for it. */
  async open({ agent, session: id, signal, tell }: Wanted): Promise<Opened | undefined> {
    const client = this.#client(agent, tell)
    this.#told.clear()
    try {
      const resume = id === undefined ? {} : { resume: { session_id: id, after: 0 } }
      const session = await client.session({ events: ['x.approval.request'], signal, ...resume })
      return { session, leave: () => client.close() }
    } catch (thrown) {
      client.close()
      if (signal.aborted) return undefined
      if (!(thrown instanceof UampClientError)) throw thrown
      const message = (thrown.code === 'unreachable' ? await this.#untrusted() : undefined) ?? this.#advice(thrown, id)
      throw new UampClientError({ code: thrown.code, message, details: thrown.details }, thrown)
    }
  }

  /** The names of the agents there, as far as it tells. */
  async agents(): Promise<readonly string[]> {
    if (this.#local) return this.#local.agents
    const list = await this.#list('/v1/models')
    return list.flatMap((each) => (typeof each['id'] === 'string' ? [each['id']] : []))
  }

  /** What a response was asked, unless it was told before: the texts of the user, and the kinds of other parts. */
  async asked(response: string): Promise<string | undefined> {
    // The newest first. After an answer that failed, the list has the question before it as well.
    const items = await this.#list(`/v1/responses/${encodeURIComponent(response)}/input_items?order=desc&limit=${RECENT}`)
    const earlier = items.findIndex(({ role, id }) => role === 'assistant' || this.#told.has(id))
    const fresh = items.slice(0, earlier < 0 ? undefined : earlier).filter((item) => item['role'] === 'user')
    for (const { id } of fresh) this.#told.add(id)
    const contents = fresh.reverse().flatMap(({ content }) => (Array.isArray(content) ? content.map(partText) : []))
    return contents.length === 0 ? undefined : contents.join('\n')
  }

  async close(): Promise<void> {
    await this.#local?.close()
  }

  /** What to say when the server has gone for good. */
  gone({ message }: Error, session: string): string {
    return `${this.where} does not answer any more (${message}). When it is back: ${this.command(session)}`
  }

  /** Sessions are there after this process, too. */
  get keeps(): boolean {
    return this.#local?.keeps ?? true
  }

  /** The command that goes on with a session. */
  command(session: string): string {
    const folder = this.#local?.folder
    const data = folder === undefined ? '' : ` --data ${shown(folder)}`
    return `npx uamp chat${this.#name === '' ? '' : ` ${this.#name}`}${this.#options}${data} --session ${session}`
  }

  #client(agent: string | undefined, tell: (text: string) => void): Client {
    const local = this.#local
    return connect(this.#url, {
      ...present({ token: this.#token, agent: agent ?? local?.agent, reconnect: this.#reconnect }),
      ...(local && { transport: 'sse' as const, fetch: local.fetch }),
      onStatus: (status) => this.#follow(status, tell),
    })
  }

  /** Reports when the connection is lost, and when it is back. */
  #follow(status: Status, tell: (text: string) => void): void {
    const wasLost = this.lost
    this.lost = status === 'reconnecting'
    if (this.lost && !wasLost) tell(`(the connection to ${this.where} is lost; trying again)`)
    if (status === 'open' && wasLost) tell('(connected again)')
  }

  /** The entries of a list, or none if it cannot be had: a server of another make may lack it. */
  async #list(path: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const call = this.#local?.fetch ?? globalThis.fetch
    try {
      const headers = this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }
      const answer = await call(`${this.#url}${path}`, { headers, signal: AbortSignal.timeout(LIST_MS) })
      const text = answer.ok ? await bounded(answer) : '{}'
      const { data } = JSON.parse(text) as { data?: unknown }
      return Array.isArray(data) ? data.filter(isRecord) : []
    } catch {
      return []
    }
  }

  /** What to do about the certificate of the server, if that is why there is no connection. A WebSocket does not tell why. */
  async #untrusted(): Promise<string | undefined> {
    if (!this.#url.startsWith('https:')) return undefined
    try {
      await fetch(`${this.#url}/health`, { signal: AbortSignal.timeout(LIST_MS), redirect: 'manual' })
      return undefined
    } catch (thrown) {
      const { code } = ((thrown as Error).cause ?? {}) as NodeJS.ErrnoException
      if (!/CERT|SIGNATURE|ISSUER/.test(code ?? '')) return undefined
      return `The certificate of ${this.#url} is not trusted here (${code}). If its authority is your own, name its file: NODE_EXTRA_CA_CERTS=ca.pem`
    }
  }

  #advice({ code, message, details }: UampClientError, id: string | undefined): string {
    const agents = details?.['agents']
    if (Array.isArray(agents)) return `${message}. Choose one: ${agents.map((name) => `--agent ${name}`).join(', ')}`
    switch (code) {
      case 'unreachable':
        return `There is no server at ${this.#url}. Start one with \`npx uamp serve\`, name another: \`npx uamp chat <url>\`, or talk to a file: \`npx uamp chat agent.ts\``
      case 'unauthorized':
        // A token that somebody issued can be refused for many reasons, which the server says.
        if (details?.['reason'] !== undefined || (this.#token !== undefined && looksLikeJwt(this.#token))) {
          return `${this.#url} refuses this token: ${message}`
        }
        return this.#token === undefined
          ? `${this.#url} wants a token: \`npx uamp chat --token-file <file>\`, UAMP_TOKEN=<secret>, or --token <secret>`
          : `${this.#url} does not know this token: give the secret alone, without its name`
      case 'not_found':
        return id === undefined
          ? `${this.#url} does not speak UAMP: ${message}. Other protocols: \`npx uamp chat a2a+${this.#url}\`, ag-ui+…, completions+…`
          : `${message} that is yours. Leave --session out to begin a new one`
      default:
        return message
    }
  }
}

async function bounded(answer: Response): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const bytes of (answer.body ?? []) as AsyncIterable<Uint8Array>) {
    text += decoder.decode(bytes, { stream: true })
    if (text.length > LIST) return '{}'
  }
  return text
}

function partText(part: unknown): string {
  const { type = '', text, filename } = isRecord(part) ? part : {}
  if (typeof text === 'string') return text
  const kind = String(type).replace('input_', '')
  return `[${typeof filename === 'string' ? `${kind} ${filename}` : kind}]`
}
