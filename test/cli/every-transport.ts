import { once } from 'node:events'
import { WebSocket } from 'ws'
import { ask, joined, stream, user } from '../openai/support.ts'
import { connect, says } from '../openai/realtime-wire.ts'
import { client, deltasOf, textOf as textOfResponse, type Told } from '../openai/responses-wire.ts'
import { say, textOf } from '../support/talk.ts'
import { overSse, overWebSocket, type Connect } from '../support/wire.ts'

/** Says something over one protocol, and gives the answer's text. */
type Talk = (url: string, text: string) => Promise<string>

/** All that a server speaks, by name. */
export const EVERY_TRANSPORT: Readonly<Record<string, Talk>> = {
  'UAMP events, WebSocket': overEvents(overWebSocket),
  'UAMP events, HTTP and SSE': overEvents(overSse),
  'Chat Completions': async (url, text) => {
    const { body } = await ask(`${url}/v1/chat/completions`, { messages: [user(text)] })
    return body.choices[0].message.content as string
  },
  'Chat Completions, streamed': async (url, text) =>
    joined((await stream(`${url}/v1/chat/completions`, { messages: [user(text)] })).chunks, 'content'),
  Responses: async (url, text) => textOfResponse((await client(url).ask({ input: text })).body),
  'Responses, streamed': async (url, text) => deltasOf(await client(url).stream({ input: text })),
  'Responses, WebSocket': overResponsesSocket,
  Realtime: async (url, text) => {
    const wire = await connect(url)
    await wire.ask({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } }, 'session.updated')
    const done = (await wire.respond(says(text))).at(-1)
    return done?.['response'].output[0].content[0].text as string
  },
  'A2A 1.0, JSON-RPC': async (url, text) => {
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text }] }
    const { result } = await post(`${url}/a2a`, { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } })
    return textOfTask(result.task)
  },
  'A2A 0.3, REST': async (url, text) => {
    const message = { messageId: 'm', role: 'ROLE_USER', content: [{ text }] }
    const { task } = await post(`${url}/a2a/rest/v1/message:send`, { message })
    return textOfTask(task)
  },
  'AG-UI': async (url, text) => {
    const [threadId, runId, id] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()]
    const body = JSON.stringify({ threadId, runId, messages: [{ id, role: 'user', content: text }] })
    const response = await fetch(`${url}/ag-ui`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    const events = [...(await response.text()).matchAll(/^data: (.*)$/gm)].map(
      ([, data]) => JSON.parse(data ?? '') as Record<string, string>,
    )
    return events.flatMap(({ type, delta }) => (type === 'TEXT_MESSAGE_CONTENT' ? [delta] : [])).join('')
  },
  ACP: async (url, text) => {
    const params = { messages: [{ role: 'user', content: text }] }
    return JSON.stringify(await post(`${url}/acp`, { jsonrpc: '2.0', id: 1, method: 'prompt/submit', params }))
  },
  Omnia: overOmnia,
}

/** What is common to the answers that are read here. */
interface Answered {
  readonly result: { readonly task: Task }
  readonly task: Task
}

interface Task {
  readonly artifacts: readonly { readonly parts: readonly { readonly text: string }[] }[]
}

const textOfTask = ({ artifacts }: Task): string => artifacts[0]?.parts[0]?.text ?? ''

async function post(url: string, body: object): Promise<Answered> {
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  return (await response.json()) as Answered
}

async function overOmnia(url: string, content: string): Promise<string> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/omnia?agent=assistant`)
  const done = new Promise<string>((resolve, reject) => {
    socket.on('message', (data: Buffer) => {
      const told = JSON.parse(data.toString()) as { type: string; content?: string }
      if (told.type === 'done') resolve(told.content ?? '')
      else if (told.type === 'error') reject(new Error(JSON.stringify(told)))
    })
    socket.on('close', () => reject(new Error('The connection was closed')))
  })
  await once(socket, 'open')
  socket.send(JSON.stringify({ type: 'message', content }))
  const text = await done
  socket.terminate()
  return text
}

function overEvents(open: Connect): Talk {
  return async (url, text) => {
    const wire = await open(url)
    await wire.open()
    const heard = await say(wire, text)
    wire.close()
    return textOf(heard)
  }
}

async function overResponsesSocket(url: string, input: string): Promise<string> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/responses`)
  const heard: Told[] = []
  const ended = new Promise<void>((resolve, reject) => {
    socket.on('message', (data: Buffer) => {
      const told = JSON.parse(data.toString()) as Told
      heard.push(told)
      if (told.type === 'response.completed') resolve()
      else if (told.type === 'error' || told.type === 'response.failed') reject(new Error(JSON.stringify(told)))
    })
    socket.on('close', () => reject(new Error('The connection was closed')))
  })
  await once(socket, 'open')
  socket.send(JSON.stringify({ type: 'response.create', input }))
  await ended
  socket.terminate()
  return deltasOf(heard)
}
