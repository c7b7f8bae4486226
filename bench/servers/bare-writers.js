// @ts-check

/** What is written as JSON. @typedef {{ readonly [field: string]: any }} Event */

/** What one writes first: an event, a write. */
export const naive = {
  /** @param {import('ws').WebSocket} ws */
  ws: (ws) => (/** @type {Event} */ event) => ws.send(JSON.stringify(event)),
  /** @param {import('node:http').ServerResponse} response */
  sse: (response) => (/** @type {Event} */ event) => response.write(`id: ${event.seq}\ndata: ${JSON.stringify(event)}\n\n`),
}

/**
 * The same with one write a tick. `nextTick` runs when the agent's microtasks have run dry, so a batch is all that the agent made
 * without waiting; smaller batches were never faster.
 */
export const best = {
  /** @param {import('ws').WebSocket} ws @param {import('node:stream').Duplex} socket */
  ws(ws, socket) {
    let corked = false
    const uncork = () => {
      corked = false
      socket.uncork()
    }
    return (/** @type {Event} */ event) => {
      if (!corked) {
        corked = true
        socket.cork()
        process.nextTick(uncork)
      }
      ws.send(JSON.stringify(event))
    }
  },
  /** @param {import('node:http').ServerResponse} response */
  sse(response) {
    let text = ''
    const flush = () => {
      response.write(text)
      text = ''
    }
    return (/** @type {Event} */ event) => {
      if (text === '') process.nextTick(flush)
      text += `id: ${event.seq}\ndata: ${JSON.stringify(event)}\n\n`
    }
  },
}

/** The limit of this machine: the same bytes without an object, and frames in one piece that nobody has to join. */
export const template = {
  /** @param {import('ws').WebSocket} _ @param {import('node:stream').Duplex} socket */
  ws(_, socket) {
    /** @type {string[]} */
    let texts = []
    let length = 0
    const flush = () => {
      const bytes = Buffer.allocUnsafe(length)
      let at = 0
      for (const text of texts) {
        const size = Buffer.byteLength(text)
        bytes[at++] = 0x81
        if (size < 126) bytes[at++] = size
        else if (size < 65536) {
          bytes[at++] = 126
          at = bytes.writeUInt16BE(size, at)
        } else {
          bytes[at++] = 127
          at = bytes.writeBigUInt64BE(BigInt(size), at)
        }
        at += bytes.write(text, at)
      }
      texts = []
      length = 0
      socket.write(bytes.subarray(0, at))
    }
    return (/** @type {Event | string} */ event) => {
      const text = typeof event === 'string' ? event : JSON.stringify(event)
      if (texts.length === 0) process.nextTick(flush)
      texts.push(text)
      length += 10 + 3 * text.length
    }
  },
  /** @param {import('node:http').ServerResponse} response */
  sse(response) {
    let text = ''
    const flush = () => {
      response.write(text)
      text = ''
    }
    return (/** @type {Event | string} */ event, /** @type {number} */ seq) => {
      if (text === '') process.nextTick(flush)
      text += `id: ${seq}\ndata: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`
    }
  },
}
