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
