import { dial } from './dial.ts'
import { sseParser } from '../../src/wire/sse-parse.ts'

/** A server event as it came over the wire. */
export type Heard = { readonly type: string; readonly [field: string]: any } // eslint-disable-line

/** How an event was refused: an error event over a socket, an error body over HTTP. */
interface Refusal {
  readonly code: string
  readonly message: string
  readonly details: Record<string, unknown> | undefined
  /** The event that told it, or the HTTP status. */
  readonly as: string | number
}

interface WireOptions {
  readonly token?: string
  readonly path?: string
}

/** One client's connection in either binding, as plain as it can be: what the contract of both is tested with. */
export interface Wire {
  readonly heard: readonly Heard[]
  /** Opens a session and waits for `session.created`. */
  open(create?: object): Promise<string>
  /** Follows a session that exists, from after `after`. */
  follow(session: string, after: number): Promise<void>
  /** Sends an event; resolves with the refusal, if it is refused, else when it is acknowledged. */
  send(event: object): Promise<Refusal | undefined>
  /** The next event, after those this was asked for before, that fits. */
  next(fits: string | ((event: Heard) => boolean)): Promise<Heard>
  /** As if the network went away. */
  cut(): void
  close(): void
}

export type Connect = (url: string, options?: WireOptions) => Promise<Wire>

/** What a POST is answered with. */
interface Body {
  readonly session_id: string
  readonly error: Omit<Refusal, 'as'>
}

let events = 0
const withId = (event: object): { event_id: string; type?: string } => ({ event_id: `e${++events}`, ...event })

const CLIENT = {
  id: 'test',
  provider: 'test',
  modalities: ['text', 'image', 'audio', 'video', 'file'],
  supports_streaming: true,
  extensions: { uamp: { ack: true, events: true } },
}

/** Events as they come, and those who wait for one. */
class Inbox {
  readonly heard: Heard[] = []
  #cursor = 0
  #waiting: (() => void)[] = []

  put(event: Heard): void {
    this.heard.push(event)
    for (const wake of this.#waiting.splice(0)) wake()
  }

  async next(fits: string | ((event: Heard) => boolean)): Promise<Heard> {
    for (;;) {
      while (this.#cursor < this.heard.length) {
        const event = this.heard[this.#cursor++] as Heard
        if (typeof fits === 'string' ? event.type === fits : fits(event)) return event
      }
      await this.changed()
    }
  }

  changed(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  async find(fits: (event: Heard) => boolean): Promise<Heard> {
    for (;;) {
      const found = this.heard.find(fits)
      if (found) return found
      await this.changed()
    }
  }
}

export const overWebSocket: Connect = async (url, { token, path = '/uamp' } = {}) => {
  const socket = dial.webSocket(url + path, token === undefined ? {} : { authorization: `Bearer ${token}` })
  const inbox = new Inbox()
  socket.on('message', (data: Buffer) => inbox.put(JSON.parse(data.toString()) as Heard))
  socket.on('error', () => undefined)
  await new Promise<void>((resolve, reject) => socket.once('open', resolve).once('error', reject))

  const create = async (event: object): Promise<string> => {
    const { event_id } = withId(event)
    socket.send(
      JSON.stringify({
        type: 'session.create',
        uamp_version: '1.0',
        session: { modalities: ['text'] },
        client_capabilities: CLIENT,
        ...event,
        event_id,
      }),
    )
    const answer = await inbox.find((e) => e['extensions']?.uamp?.request === event_id || e['error']?.details?.event_id === event_id)
    if (answer.type !== 'session.created') throw Object.assign(new Error(answer['error'].message as string), { refusal: answer })
    return answer['session_id'] as string
  }
  return {
    heard: inbox.heard,
    open: (event = {}) => create(event),
    follow: async (session, after) =>
      void (await create({ session: { modalities: ['text'], extensions: { uamp: { resume: { session_id: session, after } } } } })),
    async send(given) {
      const event = withId(given)
      socket.send(JSON.stringify(event))
      const answer = await inbox.find(
        (e) =>
          (e.type === 'x.ack' && e['event_ids'].includes(event.event_id)) ||
          e['error']?.details?.event_id === event.event_id ||
          (event.type === 'ping' && e.type === 'pong'),
      )
      const { error } = answer
      return error && { code: error.code, message: error.message, details: error.details, as: answer.type }
    },
    next: (fits) => inbox.next(fits),
    cut: () => socket.terminate(),
    close: () => socket.close(),
  }
}

export const overSse: Connect = async (url, { token } = {}) => {
  const inbox = new Inbox()
  const leave = new AbortController()
  const headers = { 'content-type': 'application/json', ...(token !== undefined && { authorization: `Bearer ${token}` }) }
  let session: string | undefined

  const post = async (event: object, to?: string): Promise<{ response: Response; body: Body }> => {
    const response = await fetch(`${url}/events`, {
      method: 'POST',
      headers: { ...headers, ...(to !== undefined && { 'x-session-id': to }) },
      body: JSON.stringify(event),
    })
    return { response, body: await response.json() }
  }
  const follow = async (id: string, after: number): Promise<void> => {
    const response = await fetch(`${url}/events/stream`, {
      headers: { ...headers, 'x-session-id': id, ...(after > 0 && { 'last-event-id': String(after) }) },
      signal: leave.signal,
    })
    if (!response.ok || !response.body) throw Object.assign(new Error(`${response.status}`), { refusal: await response.json() })
    session ??= id
    const body = response.body
    void (async () => {
      const parse = sseParser()
      const decoder = new TextDecoder()
      for await (const bytes of body)
        for (const { data } of parse(decoder.decode(bytes, { stream: true }))) inbox.put(JSON.parse(data) as Heard)
    })().catch(() => undefined)
  }
  return {
    heard: inbox.heard,
    async open(event = {}) {
      const create = withId({
        type: 'session.create',
        uamp_version: '1.0',
        session: { modalities: ['text'] },
        client_capabilities: CLIENT,
        ...event,
      })
      const { response, body } = await post(create)
      if (!response.ok) throw Object.assign(new Error(body.error.message as string), { refusal: body })
      session = body.session_id as string
      await follow(session, 0)
      await inbox.find((e) => e.type === 'session.created' && e['session_id'] === body.session_id)
      return session
    },
    follow,
    async send(given) {
      const event = withId(given) as { session_id?: string }
      const { response, body } = await post(event, event.session_id ?? session)
      return response.ok ? undefined : { ...body.error, as: response.status }
    },
    next: (fits) => inbox.next(fits),
    cut: () => leave.abort(),
    close: () => leave.abort(),
  }
}
