import { expect } from 'vitest'

export interface Heard {
  readonly type: string
  readonly [field: string]: any // eslint-disable-line
}

export interface Posted {
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  /** More of the input, or other. */
  readonly input?: object
}

export const user = (id: string, content: unknown = id) => ({ id, role: 'user', content })

/** Part of the input of a client that does not have the conversation. */
export const joins = { forwardedProps: { uamp: { join: true } } }

/** A run, as `fetch` answers it. A text is the one message of a new thread. */
export function post(url: string, said: string | readonly object[], { headers = {}, signal, input }: Posted = {}): Promise<Response> {
  const messages = typeof said === 'string' ? [user(crypto.randomUUID(), said)] : said
  const body = { threadId: crypto.randomUUID(), runId: crypto.randomUUID(), protocolVersion: '1.0', messages, ...input }
  return fetch(`${url}/ag-ui`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  })
}

/** The events of a whole run, with the ids that they have. */
export async function run(url: string, said: string | readonly object[], posted?: Posted) {
  const response = await post(url, said, posted)
  const text = await response.text()
  expect(response.status, text).toBe(200)
  return heard(text)
}

export async function replay(url: string, runId: string, headers: Readonly<Record<string, string>> = {}) {
  const response = await fetch(`${url}/ag-ui/runs/${encodeURIComponent(runId)}`, { headers })
  const text = await response.text()
  expect(response.status, text).toBe(200)
  return heard(text)
}

/**
 * As AG-UI's clients read it: line feeds alone, one line of data each. Others they fail on. Timestamps, which a replay has not, are
 * in `times` alone.
 */
export function heard(text: string) {
  expect(text).not.toContain('\r')
  const frames = text.split('\n\n').filter((frame) => frame !== '')
  const events: Heard[] = []
  const ids: string[] = []
  const times: (number | undefined)[] = []
  for (const frame of frames) {
    if (frame.startsWith(':')) continue
    const [, id, data] = /^id: ([\d.]+-\w+)\ndata: ([^\n]*)$/.exec(frame) ?? []
    expect(data, frame).toBeDefined()
    const { timestamp, ...event } = JSON.parse(data as string) as Heard
    events.push(event as Heard)
    times.push(timestamp as number | undefined)
    ids.push(id as string)
  }
  const bare = text.replaceAll(/,"timestamp":\d+\}$/gm, '}')
  return { events, ids, times, types: events.map(({ type }) => type), said: textOf(events), end: events.at(-1) as Heard, text: bare }
}

function textOf(events: readonly Heard[]): string {
  return events.map(({ type, delta }) => (type === 'TEXT_MESSAGE_CONTENT' ? (delta as string) : '')).join('')
}

export async function refusal(response: Response) {
  const { error } = (await response.json()) as { error: { code: string; message: string; details?: Record<string, unknown> } }
  return { status: response.status, ...error }
}

/** What the client has after a run: the assistant's messages as its reducer makes them. */
export function messagesOf(events: readonly Heard[]): object[] {
  const messages = new Map<string, Record<string, unknown>>()
  for (const event of events) {
    if (event.type === 'TEXT_MESSAGE_START') messages.set(event['messageId'], { id: event['messageId'], role: 'assistant', content: '' })
    if (event.type === 'TEXT_MESSAGE_CONTENT') {
      const message = messages.get(event['messageId']) as { content: string }
      message.content += event['delta'] as string
    }
    if (event.type === 'TOOL_CALL_START') {
      const id = event['parentMessageId'] as string
      const message = messages.get(id) ?? { id, role: 'assistant' }
      const calls = (message['toolCalls'] ?? []) as object[]
      const call = { id: event['toolCallId'], type: 'function', function: { name: event['toolCallName'], arguments: '' } }
      messages.set(id, { ...message, toolCalls: [...calls, call] })
    }
    if (event.type === 'TOOL_CALL_ARGS') {
      for (const { toolCalls = [] } of messages.values() as Iterable<{ toolCalls?: { id: string; function: { arguments: string } }[] }>) {
        const call = toolCalls.find(({ id }) => id === event['toolCallId'])
        if (call) call.function.arguments += event['delta'] as string
      }
    }
    if (event.type === 'TOOL_CALL_RESULT') {
      const { messageId: id, toolCallId, content } = event
      messages.set(id, { id, role: 'tool', toolCallId, content })
    }
  }
  return [...messages.values()]
}
