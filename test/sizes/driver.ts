import { once } from 'node:events'
import { WebSocket } from 'ws'
import { sseParser } from '../../src/wire/sse-parse.ts'
import type { Cell } from './cells.ts'
import type { Pace } from './pace.ts'
import type { Said } from './said.ts'

/** Whatever came over the wire. */
export type Wire = any // eslint-disable-line

/** Where a driver finds what it talks to. */
export interface Stage {
  readonly cell: Cell
  readonly prompt: string
  readonly pace: Pace
  /** A server with the agent, reached over a connection of that pace. */
  url(): Promise<string>
  /** To be done when the cell is. */
  after(task: () => void | Promise<void>): void
}

/** One protocol. To add one, write a file with one of these and name it in `drivers/index.ts`. */
export interface Driver {
  readonly name: string
  /** What its clients may ask for: a stream or not, kept or not. */
  readonly choices: readonly Pick<Cell, 'streamed' | 'stored'>[]
  /** It is spoken to, and speaks. */
  readonly sound?: boolean
  /** Gives what was heard. Throws `Told` where the protocol says that there is no answer, `Lost` where it ends without saying so. */
  ask(stage: Stage): Promise<Said>
  /** Why this cell may end in an error: the limit that is smaller than the answer. The error must hold `code`. */
  limit?(cell: Cell): Limit | undefined
}

export interface Limit {
  readonly code: string
  readonly why: string
}

/** The protocol's own error, or the end of its connection. */
export class Told extends Error {
  readonly code: string

  constructor(code: string, message = code) {
    super(message)
    this.code = code
  }
}

/** What must never happen: an answer that looks complete, and is not. */
export class Lost extends Error {}

export const STREAMED_STORED = [{ streamed: true, stored: true }] as const
export const BOTH_STORED = [
  { streamed: true, stored: true },
  { streamed: false, stored: true },
] as const
export const ALL_CHOICES = [...BOTH_STORED, { streamed: true, stored: false }, { streamed: false, stored: false }] as const

/** The text of an answer: pieces as they came, and the whole where the protocol repeats it. Both must be the same. */
export class Hearing {
  readonly #pieces: string[] = []
  media: string | undefined
  readonly #sound: Buffer[] = []

  get silent(): boolean {
    return this.#pieces.length === 0
  }

  add(piece: string | undefined | null): void {
    if (piece) this.#pieces.push(piece)
  }

  hear(base64: string): void {
    this.#sound.push(Buffer.from(base64, 'base64'))
  }

  said(whole?: string): Said {
    const text = this.#pieces.join('')
    if (whole !== undefined && whole !== text) throw new Lost(`the pieces have ${text.length} characters, the whole ${whole.length}`)
    return { text, media: this.media, sound: this.#sound.length > 0 ? Buffer.concat(this.#sound) : undefined }
  }
}

/** One request, and its answer as JSON. A status that is not 2xx is thrown, with the code that `codeOf` finds. */
export async function json(url: string, body: object, headers: Readonly<Record<string, string>> = {}): Promise<Wire> {
  const response = await post(url, body, headers)
  const read = await response.text().catch(cut)
  if (!response.ok) throw new Told(codeIn(read), `${response.status} ${read.slice(0, 300)}`)
  return JSON.parse(read)
}

interface Event {
  readonly event: string | undefined
  readonly data: string
}

/** One request, and its answer as server-sent events. Without a body it is a GET. */
export async function* sse(url: string, body?: object, headers: Readonly<Record<string, string>> = {}): AsyncGenerator<Event, void> {
  const response = await post(url, body, { accept: 'text/event-stream', ...headers })
  if (!response.headers.get('content-type')?.startsWith('text/event-stream') || !response.body) {
    const read = await response.text().catch(cut)
    throw new Told(codeIn(read), `${response.status} ${read.slice(0, 300)}`)
  }
  const parse = sseParser({ limit: Infinity })
  const decoder = new TextDecoder()
  const reader = response.body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(cut)
      if (done) return
      for (const { event, data } of parse(decoder.decode(value, { stream: true }))) yield { event, data }
    }
  } finally {
    reader.cancel().catch(() => undefined)
  }
}

async function post(url: string, body: object | undefined, headers: Readonly<Record<string, string>>): Promise<Response> {
  const sent = body && { method: 'POST', body: JSON.stringify(body) }
  return fetch(url, { headers: { 'content-type': 'application/json', ...headers }, ...sent }).catch(cut)
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

  static async open(url: string, stage: Pick<Stage, 'after'>): Promise<Line> {
    const socket = new WebSocket(url.replace('http', 'ws'), { maxPayload: 0, perMessageDeflate: false })
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
