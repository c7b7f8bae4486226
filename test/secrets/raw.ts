import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'

/** Says something over one protocol, and gives all that came back as it stood on the wire. */
export type Fire = (url: string, text: string) => Promise<string>

const JSON_TYPE = { 'content-type': 'application/json' }

export async function post(url: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const response = await fetch(url, { method: 'POST', headers: { ...JSON_TYPE, ...headers }, body: JSON.stringify(body) })
  return `${JSON.stringify([...response.headers])}\n${await response.text()}`
}

/** Sends texts, and reads up to the one that fits, or to the close with its reason. */
export async function talk(url: string, sent: readonly (object | ((said: string) => object | undefined))[], last: RegExp): Promise<string> {
  const socket = new WebSocket(url.replace('http', 'ws'))
  onTestFinished(() => socket.terminate())
  const heard: string[] = []
  const rest = [...sent]
  const over = new Promise<void>((resolve, reject) => {
    socket.on('message', (data: Buffer) => {
      const text = data.toString()
      heard.push(text)
      const next = rest[0]
      if (typeof next === 'function') {
        const event = next(text)
        if (event !== undefined) {
          rest.shift()
          socket.send(JSON.stringify(event))
        }
      }
      if (last.test(text)) resolve()
    })
    socket.on('close', (_, reason: Buffer) => {
      heard.push(reason.toString())
      resolve()
    })
    socket.on('error', reject)
  })
  await once(socket, 'open')
  while (typeof rest[0] === 'object') socket.send(JSON.stringify(rest.shift()))
  await over
  socket.terminate()
  return heard.join('\n')
}

const said = (text: string) => [{ type: 'session.create' }, { type: 'input.text', text }, { type: 'response.create' }]
const user = (content: string) => [{ role: 'user', content }]

export const EVERY_WIRE: Readonly<Record<string, Fire>> = {
  'UAMP events, WebSocket': (url, text) =>
    talk(
      `${url}/uamp`,
      [
        { type: 'session.create' },
        (heard) => (/session\.created/.test(heard) ? { type: 'input.text', text } : undefined),
        (heard) => (/capabilities/.test(heard) ? { type: 'response.create' } : undefined),
      ],
      /"type":"response\.(done|error)"/,
    ),
  'UAMP events, HTTP and SSE': (url, text) => post(`${url}/events`, said(text), { accept: 'text/event-stream' }),
  'Chat Completions': (url, text) => post(`${url}/v1/chat/completions`, { messages: user(text) }),
  'Chat Completions, streamed': (url, text) => post(`${url}/v1/chat/completions`, { stream: true, messages: user(text) }),
  Responses: (url, text) => post(`${url}/v1/responses`, { input: text }),
  'Responses, streamed': (url, text) => post(`${url}/v1/responses`, { input: text, stream: true }),
  'Responses, WebSocket': (url, text) =>
    talk(`${url}/v1/responses`, [{ type: 'response.create', input: text }], /"type":"(error|response\.(failed|completed))"/),
  Realtime: (url, text) =>
    talk(
      `${url}/v1/realtime?model=m`,
      [
        { type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] } },
        { type: 'response.create', response: { output_modalities: ['text'] } },
      ],
      /"type":"response\.done"/,
    ),
  'A2A 1.0, JSON-RPC': (url, text) =>
    post(`${url}/a2a`, {
      jsonrpc: '2.0',
      id: 1,
      method: 'SendMessage',
      params: { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text }] } },
    }),
  'A2A 1.0, streamed': (url, text) =>
    post(`${url}/a2a`, {
      jsonrpc: '2.0',
      id: 1,
      method: 'SendStreamingMessage',
      params: { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text }] } },
    }),
  'A2A 0.3, JSON-RPC': (url, text) =>
    post(`${url}/a2a`, {
      jsonrpc: '2.0',
      id: 1,
      method: 'message/send',
      params: { message: { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text }] } },
    }),
  'A2A 0.3, REST': (url, text) =>
    post(`${url}/a2a/rest/v1/message:send`, { message: { messageId: 'm', role: 'ROLE_USER', content: [{ text }] } }),
  'A2A 0.1': (url, text) =>
    post(`${url}/a2a`, {
      jsonrpc: '2.0',
      id: 1,
      method: 'tasks/send',
      params: { id: crypto.randomUUID(), message: { role: 'user', parts: [{ type: 'text', text }] } },
    }),
  '/tasks': (url, text) => post(`${url}/tasks`, { message: { role: 'user', parts: [{ type: 'text', text }] } }),
  'AG-UI': (url, text) =>
    post(`${url}/ag-ui`, {
      threadId: crypto.randomUUID(),
      runId: crypto.randomUUID(),
      messages: [{ id: 'm', role: 'user', content: text }],
    }),
  'ACP, HTTP': (url, text) => post(`${url}/acp`, { jsonrpc: '2.0', id: 1, method: 'prompt/submit', params: { messages: user(text) } }),
  'ACP, WebSocket': (url, text) =>
    talk(
      `${url}/acp`,
      [
        { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1 } },
        { jsonrpc: '2.0', id: 2, method: 'session/new', params: { cwd: '/', mcpServers: [] } },
        (heard) => {
          const { id, result } = JSON.parse(heard) as { id?: number; result?: { sessionId: string } }
          return id === 2
            ? {
                jsonrpc: '2.0',
                id: 3,
                method: 'session/prompt',
                params: { sessionId: result?.sessionId, prompt: [{ type: 'text', text }] },
              }
            : undefined
        },
      ],
      /"id":3\b/,
    ),
  Omnia: (url, text) => talk(`${url}/omnia?agent=bot`, [{ type: 'message', content: text }], /"type":"(done|error)"/),
}
