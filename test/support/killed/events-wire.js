// @ts-check
import { Gone, must } from '../violation.js'
import { call, eventsOf, openSocket, request } from './wire.js'

/** A connection in either binding. @typedef {{ send(events: readonly any[]): void, close(): void }} Link */
/** @typedef {{ event: (event: any) => void, acked: (ids: readonly string[]) => void, refused: (id: string | undefined, error: any) => void, closed: () => void }} Hears */
/** @typedef {{ open(url: string, create: object, hears: Hears): Promise<{ session: string, link: Link }>, follow(url: string, at: { session: string, after: number }, hears: Hears): Promise<Link> }} Binding */

const CLIENT = { id: 'chaos', provider: 'chaos', modalities: ['text'], extensions: { uamp: { ack: true, events: true } } }
export const CREATE = { type: 'session.create', uamp_version: '1.0', session: { modalities: ['text'] }, client_capabilities: CLIENT }

/** @type {Binding} */
export const overSocket = {
  async open(url, create, hears) {
    const socket = await connect(url, hears)
    const { session_id } = await socket.create(create)
    return { session: session_id, link: socket.link }
  },
  async follow(url, { session, after }, hears) {
    const socket = await connect(url, hears)
    const resume = { ...CREATE.session, extensions: { uamp: { resume: { session_id: session, after } } } }
    const created = await socket.create({ ...CREATE, event_id: `resume-${after}`, session: resume })
    const { recovered } = created.extensions.uamp.resume
    must(recovered === true, 'a place in the log is found again', JSON.stringify(created.extensions.uamp.resume))
    return socket.link
  },
}

/** @param {string} url @param {Hears} hears */
async function connect(url, hears) {
  /** @type {((answer: any) => void) | undefined} */
  let waiting
  const socket = await openSocket(`${url}/uamp`, {
    message: (event) => {
      if (waiting && (event.type === 'session.created' || event.type === 'session.error')) {
        waiting(event)
        waiting = undefined
      }
      if (event.type === 'x.ack') hears.acked(event.event_ids)
      else if (event.error && event.seq === undefined) hears.refused(event.error.details?.event_id, event.error)
      else hears.event(event)
    },
    closed: () => {
      waiting?.(undefined)
      hears.closed()
    },
  })
  return {
    link: { send: (/** @type {readonly any[]} */ events) => events.forEach((event) => socket.send(event)), close: socket.close },
    /** @param {object} event */
    async create(event) {
      const answered = new Promise((resolve) => (waiting = resolve))
      socket.send(event)
      const answer = await answered
      if (!answer) throw new Gone('the connection was lost')
      if (answer.error?.code === 'overloaded') throw new Gone('the server shuts down')
      must(answer.type === 'session.created', 'a session is there', JSON.stringify(answer.error))
      return answer
    },
  }
}

/** @type {Binding} */
export const overSse = {
  async open(url, create, hears) {
    const { status, body } = await call(`${url}/events`, { body: create })
    if (status === 503) throw new Gone('the server shuts down')
    must(status === 201, 'a session is opened', `${status} ${JSON.stringify(body)}`)
    return { session: body.session_id, link: await overSse.follow(url, { session: body.session_id, after: 0 }, hears) }
  },
  async follow(url, { session, after }, hears) {
    const leave = new AbortController()
    const headers = { 'x-session-id': session, ...(after > 0 && { 'last-event-id': String(after) }) }
    const stream = await request(`${url}/events/stream?extensions=all`, { headers, signal: leave.signal })
    must(stream.status === 200, 'a session is there', () => `${stream.status}`)
    void (async () => {
      for await (const { data } of eventsOf(stream)) {
        const event = JSON.parse(data)
        const resume = event.seq === undefined ? event.extensions?.uamp?.resume : undefined
        if (resume) hears.refused(undefined, { code: 'gap', resume })
        else hears.event(event)
      }
    })()
      .catch((error) => {
        if (!(error instanceof Gone)) hears.refused(undefined, { code: error.message })
      })
      .finally(hears.closed)
    let last = Promise.resolve()
    /** @param {readonly any[]} events */
    const post = async (events) => {
      const { status, body } = await call(`${url}/events`, {
        body: [...events],
        headers: { 'x-session-id': session },
        signal: leave.signal,
      })
      const ids = events.map(({ event_id }) => event_id)
      if (status === 202) return hears.acked(ids)
      if (events.length === 1) return hears.refused(ids[0], body.error)
      // Up to the one that is refused they were taken: sent again singly, each has an answer of its own, and no second effect.
      for (const event of events) await post([event])
    }
    const send = (/** @type {readonly any[]} */ events) => {
      last = last.then(() => post(events)).catch(() => leave.abort())
    }
    return { send, close: () => leave.abort() }
  },
}
