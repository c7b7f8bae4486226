import { randomUUID } from 'node:crypto'
import { json, sse, Told, type Wire } from '../../support/raw.ts'
import { BOTH_STORED, Hearing, Lost, type Driver } from '../driver.ts'
import type { Said } from '../said.ts'

/** What the bindings and generations call differently. */
interface Binding {
  readonly name: string
  readonly version: string
  readonly path: (streamed: boolean) => string
  readonly body: (prompt: string, streamed: boolean) => object
  /** What an answer, or an event of a stream, holds, in the words of 1.0. */
  readonly read: (answer: Wire) => Wire
}

const envelope = (method: string, params: object): object => ({ jsonrpc: '2.0', id: 1, method, params })
const message = (prompt: string) => ({ messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: prompt }] })
const earlier = (prompt: string) => ({ kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text: prompt }] })

const over = ({ name, version, path, body, read }: Binding): Driver => ({
  name,
  choices: BOTH_STORED,
  async ask({ cell: { streamed }, prompt, ...stage }) {
    const url = (await stage.url()) + path(streamed)
    const headers = { 'a2a-version': version }
    const hearing = new Hearing()
    if (!streamed) {
      const { task } = read(await json(url, body(prompt, false), { headers }))
      for (const artifact of task.artifacts ?? []) take(hearing, artifact)
      return ended(hearing, task.status)
    }
    for await (const { data } of sse(url, body(prompt, true), { headers })) {
      const { artifactUpdate, statusUpdate } = read(JSON.parse(data))
      if (artifactUpdate) take(hearing, artifactUpdate.artifact)
      if (statusUpdate && !/submitted|working/i.test(statusUpdate.status.state)) return ended(hearing, statusUpdate.status)
    }
    throw new Lost('no end')
  },
})

function take(hearing: Hearing, { parts }: Wire): void {
  for (const { text, raw, file } of parts) {
    hearing.add(text)
    hearing.media ??= raw ?? file?.bytes
  }
}

function ended(hearing: Hearing, { state, message: why }: Wire): Said {
  if (!/completed/i.test(state)) throw new Told(why?.metadata?.code ?? state, JSON.stringify(why))
  return hearing.said()
}

const result = (answer: Wire): Wire => {
  if (answer.error) throw new Told(String(answer.error.code), JSON.stringify(answer.error))
  return answer.result
}

export const a2a1 = over({
  name: 'A2A 1.0, JSON-RPC',
  version: '1.0',
  path: () => '/a2a',
  body: (prompt, streamed) => envelope(streamed ? 'SendStreamingMessage' : 'SendMessage', { message: message(prompt) }),
  read: result,
})

export const a2a1Rest = over({
  name: 'A2A 1.0, REST',
  version: '1.0',
  path: (streamed) => `/a2a/rest/message:${streamed ? 'stream' : 'send'}`,
  body: (prompt) => ({ message: message(prompt) }),
  read: (answer) => answer,
})

const NAMES: Readonly<Record<string, string>> = { task: 'task', 'artifact-update': 'artifactUpdate', 'status-update': 'statusUpdate' }

export const a2a03 = over({
  name: 'A2A 0.3, JSON-RPC',
  version: '0.3',
  path: () => '/a2a',
  body: (prompt, streamed) =>
    envelope(streamed ? 'message/stream' : 'message/send', { message: earlier(prompt), configuration: { blocking: true } }),
  read: (answer) => {
    const told = result(answer)
    return { [NAMES[told.kind] ?? '']: told }
  },
})
