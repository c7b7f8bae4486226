import { once } from 'node:events'
import type { WebSocket } from 'ws'
import { sseParser } from '../../src/wire/sse-parse.ts'
import { dial } from './dial.ts'

/** Whatever came over the wire. */
export type Wire = any // eslint-disable-line

/** The protocol's own error, or the end of its connection. */
export class Told extends Error {
  readonly code: string
  /** The answer of a request that was refused, whole. */
  readonly body: string | undefined

  constructor(code: string, message = code, body?: string) {
    super(message)
    this.code = code
    this.body = body
  }
}

export interface Sending {
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
}

/** One request, and its answer as JSON. Without a body it is a GET. A status that is not 2xx is thrown, with the code of its error. */
export async function json(url: string, body?: object, sending: Sending = {}): Promise<Wire> {
  const response = await request(url, body, sending)
  const read = await response.text().catch(cut)
  if (!response.ok) throw new Told(codeIn(read), `${response.status} ${read.slice(0, 300)}`, read)
  return JSON.parse(read)
}

interface Event {
  readonly id: string | undefined
  readonly event: string | undefined
  readonly data: string
}

/** One request, and its answer as server-sent events. Without a body it is a GET. */
export async function* sse(url: string, body?: object, { headers, signal }: Sending = {}): AsyncGenerator<Event, void> {
  const response = await request(url, body, { headers: { accept: 'text/event-stream', ...headers }, signal })
  if (!response.headers.get('content-type')?.startsWith('text/event-stream') || !response.body) {
    const read = await response.text().catch(cut)
    throw new Told(codeIn(read), `${response.status} ${read.slice(0, 300)}`, read)
  }
  const parse = sseParser({ limit: Infinity })
  const decoder = new TextDecoder()
  const reader = response.body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(cut)
      if (done) return
      for (const { id, event, data } of parse(decoder.decode(value, { stream: true }))) yield { id, event, data }
    }
  } finally {
    reader.cancel().catch(() => undefined)
  }
}

async function request(url: string, body: object | undefined, { headers, signal }: Sending): Promise<Response> {
  const sent = body && { method: 'POST', body: JSON.stringify(body) }
  return fetch(url, { headers: { 'content-type': 'application/json', ...headers }, ...sent, signal: signal ?? null }).catch(cut)
}

/** An answer whose end never came: HTTP has no other way to take back a stream. */
function cut(thrown: unknown): never {
  const { cause } = thrown as { cause?: { code?: string; message?: string } }
  throw new Told('cut', `cut: ${String(thrown)} ${cause?.code ?? cause?.message ?? ''}`)
}

/** The code of an error, wherever its protocol puts it. */
function codeIn(text: string): string {
  try {
    const { error } = JSON.parse(text) as Wire
    return String(error?.data?.[0]?.reason ?? error?.details?.[0]?.reason ?? error?.code ?? error?.type ?? text.slice(0, 100))
  } catch {
    return text.slice(0, 100)
  }
}

/** A WebSocket as its messages. */
export class Line {
  readonly socket: WebSocket
  #queue: { readonly data: Buffer; readonly binary: boolean }[] = []
  #wake: (() => void) | undefined
  #closed: { readonly code: number; readonly reason: string } | undefined

  static async open(
    url: string,
    stage: { after(task: () => void | Promise<void>): void },
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Line> {
    const socket = dial.webSocket(url, headers)
    stage.after(() => socket.terminate())
    const line = new Line(socket)
    await once(socket, 'open')
    return line
  }

  constructor(socket: WebSocket) {
    this.socket = socket
    socket.on('message', (data: Buffer, binary) => {
      this.#queue.push({ data, binary })
      this.#wake?.()
    })
    socket.on('error', () => undefined)
    socket.on('close', (code, reason) => {
      this.#closed = { code, reason: reason.toString() }
      this.#wake?.()
    })
  }

  send(message: object): void {
    this.socket.send(JSON.stringify(message))
  }

  /** The messages as they come. Throws when the connection ends. */
  async *messages(): AsyncGenerator<Wire, void> {
    for (;;) {
      const queue = this.#queue
      this.#queue = []
      for (const { data, binary } of queue) yield binary ? { type: 'binary', data } : JSON.parse(data.toString())
      if (this.#queue.length > 0) continue
      if (this.#closed) throw new Told(String(this.#closed.code), `closed with ${this.#closed.code} ${this.#closed.reason}`)
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** The next message of that type. */
  async next(messages: AsyncGenerator<Wire, void>, type: string): Promise<Wire> {
    for (;;) {
      const { value } = await messages.next()
      if (value.type === type) return value
      if (value.type === 'error') throw new Told(value.error.code, JSON.stringify(value))
    }
  }
}
