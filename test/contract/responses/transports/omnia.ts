import { expect } from 'vitest'
import { OmniaClient, type Heard } from '../../../omnia/omnia-client.ts'
import type { Seeing } from '../seen.ts'
import { RESULT } from '../shapes.ts'
import {
  AGAIN,
  answers,
  CANCELS,
  cancelling,
  ERRORS,
  FUNCTION,
  SPEECH,
  WHOLE,
  type Reading,
  type Stage,
  type Transport,
} from '../transport.ts'

const PATH = '/omnia?agent=shapes'

export const omnia: Transport = {
  name: 'Omnia',
  tellsOnce: true,
  limits: [
    { why: 'answers are always streamed', modes: WHOLE },
    { why: 'who comes back is told the rest, however much that is: see "streamed again"', modes: ['resumed'] },
    {
      why: 'after a hangup nothing is told of what went before',
      shapes: [...CANCELS, 'cancelled while a question waits', 'cancelled after the end'],
      modes: AGAIN,
    },
    { why: 'Omnia has no thoughts', sees: () => ({ thoughts: '' }) },
    { why: "tools of the agent's own are shown only with `toolMessages`", sees: () => ({ calls: [] }) },
    { why: 'speech can be played again by a URL in `done`', shapes: SPEECH, sees: () => ({ media: 1 }) },
    { why: 'an error has no usage', shapes: ERRORS, sees: () => ({ usage: 0 }) },
    {
      why: 'a client cancels by a hangup, which ends the connection',
      shapes: [...CANCELS, 'cancelled while a question waits'],
      sees: () => ({ end: 'left' }),
    },
  ],
  talk(stage) {
    let session = ''
    return { over: live(), again }

    async function live(): Promise<void> {
      const { seeing, prompt, shape, url } = stage
      const client = await OmniaClient.open(url, { path: PATH })
      session = client.sessionId
      say(client, prompt)
      if (stage.leaves) return leave(stage, client)
      const cancelled = cancelling(stage, () => client.send({ type: 'hangup', session_id: session }))
      await read(client, stage, seeing)
      await cancelled
      client.socket.terminate()
      if (shape.cancel && shape.cancel !== 'after the end') await stage.stopped
    }

    async function again({ url, seeing }: Reading): Promise<void> {
      const client = await OmniaClient.open(url, { path: `${PATH}&resume=${session}` })
      client.sessionId = session
      await read(client, stage, seeing)
    }
  },
}

function say(client: OmniaClient, content: string, more: object = {}): void {
  client.send({ type: 'message', session_id: client.sessionId, content, ext: { tools: [FUNCTION] }, ...more })
}

/** Is gone before a word has come, which would count as heard. The agent asks those who come back. */
async function leave({ url, shape, letGo, stopped }: Stage, { socket, closed }: OmniaClient): Promise<void> {
  socket.close()
  await closed
  await expect.poll(async () => (await fetch(`${url}/metrics`)).text(), { interval: 5 }).toMatch(/sockets\S* 0$/m)
  letGo()
  if (shape.asks === undefined) await stopped
}

/** Reads to the end of the answer, or of the connection, and answers what is asked. */
async function read(client: OmniaClient, stage: Stage, seeing: Seeing): Promise<void> {
  for (let at = 0; !seeing.over;) {
    for (; at < client.heard.length && !seeing.over; at++) {
      const message = client.heard[at] as Heard
      if (!take(seeing, message) || !answers(stage)) continue
      if (message.type === 'error') say(client, stage.prompt, { metadata: { payment_token: stage.coin } })
      else {
        const tool_result = { call_id: message['tool_call'].id as string, result: RESULT }
        client.send({ type: 'tool_result', session_id: client.sessionId, tool_result })
      }
    }
    if (seeing.over) return
    await Promise.race([new Promise((resolve) => client.socket.once('message', resolve)), client.closed.then(() => seeing.end('left'))])
  }
}

/** Takes one message. True: it is a question. */
function take(seeing: Seeing, message: Heard): boolean {
  const { type, content, parts = [], ext, error, tool_call: call, media_chunk: chunk } = message
  switch (type) {
    case 'chunk':
      seeing.say(content)
      return false
    case 'media_chunk':
      seeing.hear(chunk.data)
      return false
    case 'tool_call':
      return seeing.ask(call.id, call.consent_message === undefined ? 'tool.call' : 'x.approval.request')
    case 'error':
      if (error.code === 'PAYMENT_REQUIRED') return seeing.ask('payment', 'payment.required')
      seeing.end(`error ${error.details.code}`)
      return false
    case 'done':
      seeing.whole(content)
      seeing.show((parts as Heard[]).filter((part) => part.type !== 'text').length)
      seeing.use(ext?.usage?.output_tokens)
      seeing.end(ext?.status === 'cancelled' ? 'cancelled' : 'done')
      return false
    default:
      return false
  }
}
