import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { RESULT } from '../far-agent.ts'
import { CALL, DOUBLE_FUNCTION, type Inbound, type Wire } from './inbound.ts'

export const omnia: Inbound = {
  name: 'Omnia',
  ...CALL,
  words: { tool: '`tool_call`, `tool_result`', cancel: '`hangup`, and the connection is closed', error: '`error`' },
  async connect(url) {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/omnia`)
    onTestFinished(() => socket.terminate())
    const messages = received(socket)
    const { session_id } = await messages('connected')
    const send = (message: object): void => socket.send(JSON.stringify({ session_id, ...message }))
    const begin = (content: string): void => send({ type: 'message', content, ext: { tools: [DOUBLE_FUNCTION] } })
    return {
      async say(content) {
        const calls: string[] = []
        begin(content)
        for (;;) {
          const { type, tool_call: call, content: text = '', error } = await messages('tool_call', 'done', 'error')
          if (type !== 'tool_call') return { text, calls, error: error?.message }
          calls.push(call.name)
          send({ type: 'tool_result', tool_result: { call_id: call.id, result: RESULT } })
        }
      },
      async cancel(content) {
        begin(content)
        await messages('chunk')
        const closed = new Promise<string>((resolve) => socket.once('close', (_, reason) => resolve(reason.toString())))
        send({ type: 'hangup' })
        return closed
      },
    }
  },
}

/** Gives the next message of one of these types, after those that were asked for before. */
function received(socket: WebSocket): (...types: string[]) => Promise<Wire> {
  const heard: Wire[] = []
  let wake: () => void = () => undefined
  let gone = false
  socket.on('message', (data: Buffer) => {
    heard.push(JSON.parse(data.toString()))
    wake()
  })
  socket.on('error', () => undefined)
  socket.once('close', () => {
    gone = true
    wake()
  })
  return async (...types) => {
    for (;;) {
      for (let message = heard.shift(); message; message = heard.shift()) if (types.includes(message.type)) return message
      if (gone) throw new Error(`The connection was closed before ${types.join(' or ')}`)
      await new Promise<void>((resolve) => (wake = resolve))
    }
  }
}
