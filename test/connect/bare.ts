/** Both ends as the specification of UAMP events describes them, and nothing more: no code of ours, and no addition of ours. */
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'

export type Event = { readonly type: string; readonly [field: string]: any } // eslint-disable-line

let last = 0
const id = (): string => `bare-${++last}`

/** One side of a socket: what it has heard, and what it says. */
export class Bare {
  readonly heard: Event[] = []
  readonly closed: Promise<number>
  readonly #socket: WebSocket
  #wake: (() => void)[] = []

  constructor(socket: WebSocket) {
    this.#socket = socket
    onTestFinished(() => socket.terminate())
    socket.on('error', () => undefined)
    socket.on('message', (data: Buffer) => {
      this.heard.push(...([JSON.parse(data.toString())].flat() as Event[]))
      for (const wake of this.#wake.splice(0)) wake()
    })
    this.closed = new Promise((resolve) => socket.once('close', resolve))
  }

  /** Several are sent at once. */
  send(...events: readonly (object | string)[]): void {
    for (const event of events) this.#socket.send(typeof event === 'string' ? event : JSON.stringify({ event_id: id(), ...event }))
  }

  /** Sends, and waits until it is written. */
  write(event: object): Promise<void> {
    return new Promise((resolve) => this.#socket.send(JSON.stringify({ event_id: id(), ...event }), () => resolve()))
  }

  /** The first event that fits, of those that came before, too. `nth`: the one after so many others. */
  async first(fits: string | ((event: Event) => boolean), nth = 0): Promise<Event> {
    for (;;) {
      const found = this.heard.filter((event) => (typeof fits === 'string' ? event.type === fits : fits(event)))[nth]
      if (found) return found
      await new Promise<void>((resolve) => this.#wake.push(resolve))
    }
  }

  /** Resolves when the other side has taken all that was sent before. */
  async settled(): Promise<void> {
    const before = this.heard.filter(({ type }) => type === 'pong').length
    this.send({ type: 'ping' })
    await this.first('pong', before)
  }

  /** Offers an agent by its own token. Returns the session, or what refused it. */
  async offer(agent: string, token: string, more: object = {}): Promise<Event> {
    const event_id = id()
    const earlier = this.heard.length
    this.send({ type: 'session.create', event_id, uamp_version: '1.0', session: { agent, token }, ...more })
    return this.first((event) => {
      if (this.heard.indexOf(event) < earlier) return false
      return event.type === 'session.created' || (event.type.endsWith('error') && event['error'].details?.event_id === event_id)
    })
  }

  /** The request that came after so many others. */
  request(nth = 0): Promise<Event> {
    return this.first('input.text', nth)
  }

  /** Answers a request with texts. It sends neither `response.created` nor the body of `response.done`. */
  answer({ session_id }: Event, ...texts: readonly string[]): void {
    this.say({ session_id } as never, ...texts)
    this.send({ type: 'response.done', session_id })
  }

  say({ session_id }: Event, ...texts: readonly string[]): void {
    this.send(...texts.map((text) => ({ type: 'response.delta', session_id, delta: { type: 'text', text } })))
  }

  cut(): void {
    this.#socket.terminate()
  }
}

/** An agent's process that connects to a host; with another path, a client of another protocol. */
export async function bareEnd(url: string, path = '/ws', headers: Record<string, string> = {}): Promise<Bare> {
  const socket = new WebSocket(url.replace('http', 'ws') + path, { headers })
  const bare = new Bare(socket)
  await new Promise<void>((resolve, reject) => socket.once('open', resolve).once('error', reject))
  return bare
}

/** A platform that takes every agent that is offered, and the sockets that came to it. `connect`: additions of ours that it claims to know. */
export async function barePlatform(connect?: object) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await new Promise((resolve) => server.once('listening', resolve))
  const sockets: Bare[] = []
  const wake: (() => void)[] = []
  onTestFinished(() => server.close())
  server.on('connection', (socket) => {
    const bare = new Bare(socket)
    socket.on('message', (data: Buffer) => {
      const { type, session, event_id } = JSON.parse(data.toString()) as Event
      if (type === 'ping' && !connect) bare.send({ type: 'pong' })
      if (type !== 'session.create') return
      const { agent } = session
      const extensions = connect && { extensions: { uamp: { request: event_id, connect } } }
      bare.send({
        type: 'session.created',
        session_id: `of ${agent}`,
        session: { id: `of ${agent}`, agent },
        uamp_version: '1.0',
        ...extensions,
      })
    })
    sockets.push(bare)
    for (const each of wake.splice(0)) each()
  })
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/ws`,
    async socket(nth = 0): Promise<Bare> {
      while (!sockets[nth]) await new Promise<void>((resolve) => wake.push(resolve))
      return sockets[nth] as Bare
    },
    get sockets() {
      return sockets.length
    },
  }
}
