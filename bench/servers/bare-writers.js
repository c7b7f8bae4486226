// @ts-check

/** What is written as JSON. @typedef {any} Event */

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
