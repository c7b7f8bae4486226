import { PassThrough } from 'node:stream'
import { onTestFinished } from 'vitest'
import { acpOverStdio } from '../../src/serve/acp-stdio.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import { openGateway } from '../../src/serve/gateway.ts'
import { sseParser } from '../../src/wire/sse-parse.ts'
import { dial } from '../support/dial.ts'
import { startServer } from '../support/server.ts'

/** A message as it came over the wire. */
export type Heard = { readonly [field: string]: any } // eslint-disable-line

export interface Carrier {
  send(text: string): void | Promise<void>
  close(): void
}

export type Connect = (heard: (text: string) => void) => Promise<Carrier>

type Answer = (params: Heard) => unknown

/** A client as plain as it can be: messages out and in, over whatever carries them. */
export class Client {
  readonly heard: Heard[] = []
  readonly #carrier: Carrier
  readonly #answers: Record<string, Answer>
  #waiting: (() => void)[] = []
  #last = 0

  private constructor(carrier: Carrier, answers: Record<string, Answer>) {
    this.#carrier = carrier
    this.#answers = answers
  }

  static async connect(connect: Connect, answers: Record<string, Answer> = {}): Promise<Client> {
    const early: string[] = []
    let take = (text: string): void => void early.push(text)
    const carrier = await connect((text) => take(text))
    const client = new Client(carrier, answers)
    take = (text) => client.#take(text)
    for (const text of early) client.#take(text)
    onTestFinished(() => carrier.close())
    return client
  }

  /** Of another kind than an object it is sent as it is. */
  send(message: object | string): void {
    void this.#carrier.send(typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message }))
  }

  close(): void {
    this.#carrier.close()
  }

  /** The whole answer. */
  async ask(method: string, params: object = {}): Promise<Heard> {
    const id = this.begin(method, params)
    return this.next((message) => message['id'] === id && message['method'] === undefined)
  }

  begin(method: string, params: object = {}): number {
    const id = ++this.#last
    this.send({ id, method, params })
    return id
  }

  async initialize(clientCapabilities: object = {}): Promise<Heard> {
    return (await this.ask('initialize', { protocolVersion: 1, clientCapabilities }))['result'] as Heard
  }

  async open(params: object = {}): Promise<string> {
    const { result, error } = await this.ask('session/new', { cwd: '/project', mcpServers: [], ...params })
    if (error) throw new Error(JSON.stringify(error))
    return result.sessionId as string
  }

  say(sessionId: string, text: string, more: object = {}): Promise<Heard> {
    return this.ask('session/prompt', { sessionId, prompt: [{ type: 'text', text }], ...more })
  }

  /** The first that fits, also of those that came before. */
  async next(fits: (message: Heard) => boolean): Promise<Heard> {
    for (let at = 0; ;) {
      for (; at < this.heard.length; at++) if (fits(this.heard[at] as Heard)) return this.heard[at] as Heard
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }

  update(kind: string): Promise<Heard> {
    return this.next(({ params }) => params?.update?.sessionUpdate === kind)
  }

  /** Updates, in order. */
  get updates(): Heard[] {
    return this.heard.flatMap(({ method, params }) => (method === 'session/update' ? [params.update as Heard] : []))
  }

  get text(): string {
    return this.updates.map(({ sessionUpdate, content }) => (sessionUpdate === 'agent_message_chunk' ? (content.text ?? '') : '')).join('')
  }

  #take(text: string): void {
    const message = JSON.parse(text) as Heard
    this.heard.push(message)
    for (const wake of this.#waiting.splice(0)) wake()
    const { id, method, params } = message
    if (method === undefined || id === undefined) return
    const answer = this.#answers[method as string]
    if (!answer) return this.send({ id, error: { code: -32601, message: 'Method not found' } })
    void Promise.resolve(answer(params as Heard)).then(
      (result) => result === undefined || this.send({ id, result }),
      (error: unknown) => this.send({ id, error: { code: -32603, message: String(error) } }),
    )
  }
}

/** Standard input and output of the program, without the program. */
export function overStdio(agents: readonly AgentPort[], open = openGateway({ agents, data: 'memory', log: () => undefined })): Connect {
  return async (heard) => {
    const input = new PassThrough()
    let rest = ''
    const write = (text: string): boolean => {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) heard(line)
      return true
    }
    const [{ name }] = agents as [AgentPort]
    const over = acpOverStdio({
      open,
      agent: name,
      version: '1',
      input,
      output: { write, drained: async () => undefined },
    })
    onTestFinished(async () => {
      input.end()
      await over
    })
    return { send: (text) => void input.write(`${text}\n`), close: () => input.end() }
  }
}

export function overSocket(
  url: string,
  { path = '/acp', headers = {} }: { path?: string; headers?: Record<string, string> } = {},
): Connect {
  return async (heard) => {
    const socket = dial.webSocket(url + path, headers)
    socket.on('message', (data: Buffer) => heard(data.toString()))
    await new Promise<void>((resolve, reject) => socket.once('open', resolve).once('error', reject))
    socket.on('error', () => undefined)
    return { send: (text) => socket.send(text), close: () => socket.terminate() }
  }
}

/** As the official client does it: a stream of the connection, and one of each session before anything is said about it. */
export function overHttp(url: string): Connect {
  return async (heard) => {
    const gone = new AbortController()
    const streams = new Map<string, Promise<void>>()
    let connection: string | undefined
    const listen = (session: string): Promise<void> => {
      const known = streams.get(session)
      if (known) return known
      const opened = fetch(`${url}/acp`, {
        headers: {
          accept: 'text/event-stream',
          'acp-connection-id': connection ?? '',
          ...(session !== '' && { 'acp-session-id': session }),
        },
        signal: gone.signal,
      }).then((response) => void read(response).catch(() => undefined))
      streams.set(session, opened)
      return opened
    }
    const read = async (response: Response): Promise<void> => {
      const parse = sseParser()
      const decoder = new TextDecoder()
      for await (const chunk of response.body ?? []) {
        for (const { data } of parse(decoder.decode(chunk as Uint8Array, { stream: true }))) {
          const { result } = JSON.parse(data) as { result?: { sessionId?: string } }
          if (result?.sessionId !== undefined) await listen(result.sessionId)
          heard(data)
        }
      }
    }
    const post = async (text: string): Promise<void> => {
      const message = JSON.parse(text) as { params?: { sessionId?: string } }
      const session = message.params?.sessionId ?? [...streams.keys()].at(-1) ?? ''
      if (connection !== undefined && session !== '') await listen(session)
      const headers = {
        'content-type': 'application/json',
        ...(connection !== undefined && { 'acp-connection-id': connection }),
        ...(session !== '' && { 'acp-session-id': session }),
      }
      const response = await fetch(`${url}/acp`, { method: 'POST', headers, body: text })
      if (connection !== undefined) return
      connection = response.headers.get('acp-connection-id') ?? undefined
      const body = await response.text()
      if (connection !== undefined) await listen('')
      heard(body)
    }
    let last = Promise.resolve()
    return { send: (text) => (last = last.then(() => post(text))), close: () => gone.abort() }
  }
}

/** The same agents over each carrier. */
export const CARRIERS: Readonly<Record<string, (agents: readonly AgentPort[]) => Promise<Connect>>> = {
  stdio: async (agents) => overStdio(agents),
  WebSocket: async (agents) => overSocket((await startServer(agents)).url),
  HTTP: async (agents) => overHttp((await startServer(agents)).url),
}
