// @ts-check
import { WebSocket } from 'ws'
import { Gone } from '../violation.js'

/**
 * A WebSocket of JSON messages. Resolves when it is open; `closed` is called after everything that had come was heard.
 *
 * @param {string} url
 * @param {{ message: (message: any) => void, closed: () => void }} on
 * @returns {Promise<{ send(message: object): void, close(): void }>}
 */
export async function openSocket(url, on) {
  const socket = new WebSocket(url.replace('http', 'ws'), { perMessageDeflate: false })
  socket.on('error', () => undefined)
  socket.on('message', (data, isBinary) => {
    if (!isBinary) on.message(JSON.parse(String(data)))
  })
  await new Promise((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('close', () => reject(new Gone('the socket was not opened')))
  })
  socket.once('close', () => on.closed())
  return {
    send(message) {
      if (socket.readyState !== WebSocket.OPEN) throw new Gone('the socket is closed')
      socket.send(JSON.stringify(message))
    },
    close: () => socket.terminate(),
  }
}

/**
 * A request that is answered at all; how, is for the caller to judge.
 *
 * @param {string} url
 * @param {{ method?: string, body?: object, headers?: Record<string, string>, signal?: AbortSignal }} [options]
 * @returns {Promise<Response>}
 */
export async function request(url, { body, headers = {}, method = body ? 'POST' : 'GET', signal } = {}) {
  const sent = body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } }
  try {
    return await fetch(url, { method, headers, ...sent, ...(signal && { signal }) })
  } catch (error) {
    throw new Gone(String(error), { cause: error })
  }
}

/** The same, with its whole body as JSON. @param {string} url @param {Parameters<typeof request>[1]} [options] @returns {Promise<{ status: number, body: any }>} */
export async function call(url, options) {
  const response = await request(url, options)
  try {
    return { status: response.status, body: await response.json() }
  } catch (error) {
    // Cut in the middle; a whole body is always JSON.
    throw new Gone(String(error), { cause: error })
  }
}

/**
 * What a socket says after one message to it, until the reader has enough. It is cut where the server is gone.
 *
 * @param {string} url
 * @param {object} first
 * @param {() => void} onSent
 * @returns {AsyncGenerator<{ data: string }, void>}
 */
export async function* messagesOf(url, first, onSent) {
  /** @type {string[]} */
  const heard = []
  let isClosed = false
  let wake = () => {}
  const socket = await openSocket(url, {
    message: (message) => {
      heard.push(JSON.stringify(message))
      wake()
    },
    closed: () => {
      isClosed = true
      wake()
    },
  })
  try {
    socket.send(first)
    onSent()
    for (;;) {
      for (let data = heard.shift(); data !== undefined; data = heard.shift()) yield { data }
      if (isClosed) return
      await new Promise((resolve) => (wake = () => resolve(undefined)))
    }
  } finally {
    socket.close()
  }
}

/** The events of a stream as they come. Throws `Gone` where it is cut. @param {Response} response @returns {AsyncGenerator<{ id: string | undefined, event: string | undefined, data: string }, void>} */
export async function* eventsOf(response) {
  const decoder = new TextDecoder()
  let rest = ''
  const reader = response.body?.getReader()
  try {
    for (;;) {
      const step = await reader?.read().catch((/** @type {unknown} */ error) => {
        throw new Gone(String(error), { cause: error })
      })
      if (!step || step.done) return
      const frames = (rest + decoder.decode(step.value, { stream: true })).split('\n\n')
      rest = frames.pop() ?? ''
      for (const frame of frames) {
        /** @type {Record<string, string>} */
        const fields = {}
        for (const line of frame.split('\n')) {
          const colon = line.indexOf(':')
          if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).trimStart()
        }
        if (fields['data'] !== undefined) yield { id: fields['id'], event: fields['event'], data: fields['data'] }
      }
    }
  } finally {
    void reader?.cancel().catch(() => undefined)
  }
}
