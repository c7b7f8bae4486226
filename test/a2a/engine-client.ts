import type { Message, SendRequest, SendResult, StreamEvent, Task, TaskPage } from '../../src/transports/a2a/model.ts'
import { sseParser } from '../../src/wire/sse-parse.ts'
import { startServer } from '../support/server.ts'
import { engineTransport, type EngineOptions } from './engine-transport.ts'

type ServerOptions = NonNullable<Parameters<typeof startServer>[1]> & { readonly engine?: EngineOptions }

/** A server with the engine, and its one caller. */
export async function serveEngine(agents: Parameters<typeof startServer>[0], { engine, ...options }: ServerOptions = {}) {
  const server = await startServer(agents, { transports: [engineTransport(engine)], ...options })
  return { ...server, client: engineClient(server.url) }
}

export interface Refused {
  readonly error: { readonly reason: string; readonly message: string; readonly details: Record<string, unknown> }
}

export interface Heard {
  readonly id: string | undefined
  readonly event: StreamEvent
}

type Given = Partial<Omit<SendRequest, 'message'>> & { readonly message?: Partial<Message> }

/** Talks to `engineTransport` as one caller. */
export function engineClient(url: string, { token, agent }: { readonly token?: string; readonly agent?: string } = {}) {
  const base = agent === undefined ? `${url}/t` : `${url}/agents/${agent}/t`
  const headers = { ...(token !== undefined && { authorization: `Bearer ${token}` }) }
  let count = 0
  const call = async <T>(path: string, body?: object): Promise<T> => {
    const response = await fetch(base + path, { headers, ...(body && { method: 'POST', body: JSON.stringify(body) }) })
    return (await response.json()) as T
  }
  const request = (said: string | Given): SendRequest => {
    const given: Given = typeof said === 'string' ? { message: { parts: [{ text: said }] } } : said
    const message: Message = { messageId: `m${++count}`, role: 'ROLE_USER', parts: [{ text: 'hello' }], ...given.message }
    return { generation: '1.0', returnImmediately: false, ...given, message }
  }
  return {
    request,
    send: (said: string | Given) => call<SendResult & Refused>('/send', request(said)),
    /** What is sent has to become a task. */
    async task(said: string | Given): Promise<Task> {
      const answer = await call<SendResult & Refused>('/send', request(said))
      if (!('task' in answer)) throw new Error(`no task: ${JSON.stringify(answer)}`)
      return answer.task
    },
    get: (id: string, historyLength?: number) =>
      call<Task & Refused>(`/tasks/${encodeURIComponent(id)}${historyLength === undefined ? '' : `?historyLength=${historyLength}`}`),
    generation: (id: string) => call<string | Refused>(`/tasks/${id}/generation`),
    list: (given: object = {}) => call<TaskPage & Refused>('/list', given),
    cancel: (id: string) => call<Task & Refused>(`/tasks/${id}/cancel`, {}),
    stream: (said: string | Given, more: Record<string, string> = {}) =>
      open(`${base}/stream`, { method: 'POST', body: JSON.stringify(request(said)), headers: { ...headers, ...more } }),
    subscribe: (id: string, after?: string, more: Record<string, string> = {}) =>
      open(`${base}/tasks/${id}/events`, { headers: { ...headers, ...more, ...(after !== undefined && { 'last-event-id': after }) } }),
  }
}

/** A stream of events, read as they come. */
async function open(url: string, init: RequestInit) {
  const leave = new AbortController()
  const response = await fetch(url, { ...init, signal: leave.signal })
  if (!response.headers.get('content-type')?.startsWith('text/event-stream'))
    throw Object.assign(new Error('refused'), await response.json())
  const heard: Heard[] = []
  const events = read(response, heard)
  return {
    heard,
    /** The next event; undefined at the end. */
    async next(): Promise<Heard | undefined> {
      const step = await events.next()
      return step.done ? undefined : step.value
    },
    /** Everything up to the one that fits, it included. */
    async until(fits: (heard: Heard) => boolean): Promise<Heard[]> {
      for (;;) {
        const step = await events.next()
        if (step.done) throw new Error(`the stream ended: ${JSON.stringify(heard.at(-1))}`)
        if (fits(step.value)) return heard
      }
    },
    async all(): Promise<Heard[]> {
      while (!(await events.next()).done);
      return heard
    },
    leave: () => leave.abort(),
  }
}

async function* read(response: Response, heard: Heard[]): AsyncGenerator<Heard, void> {
  const parse = sseParser()
  const decoder = new TextDecoder()
  for await (const bytes of response.body ?? []) {
    for (const { data, id } of parse(decoder.decode(bytes, { stream: true }))) {
      heard.push({ id, event: JSON.parse(data) as StreamEvent })
      yield heard.at(-1) as Heard
    }
  }
}

/** The text of a stream's artifacts, appended where they say so. */
export function streamedText(heard: readonly Heard[]): string {
  const texts = new Map<string, string>()
  for (const { event } of heard) {
    if ('task' in event) for (const { artifactId, parts } of event.task.artifacts ?? []) texts.set(artifactId, parts[0]?.text ?? '')
    if (!('artifactUpdate' in event)) continue
    const { artifact, append } = event.artifactUpdate
    const text = artifact.parts[0]?.text ?? ''
    texts.set(artifact.artifactId, append ? (texts.get(artifact.artifactId) ?? 'MISSING') + text : text)
  }
  return [...texts.values()].join('|')
}

export function statesIn(heard: readonly Heard[]): string[] {
  return heard.flatMap(({ event }) => {
    const status = 'task' in event ? event.task.status : 'statusUpdate' in event ? event.statusUpdate.status : undefined
    return status ? [status.state.slice('TASK_STATE_'.length)] : []
  })
}

/** Lists are in the order of time, and time has milliseconds: what follows is later than this task. */
export function later({ status }: Task): void {
  while (Date.now() <= Date.parse(status.timestamp));
}

export const textOf = ({ artifacts = [] }: Task): string =>
  artifacts.map(({ parts }) => parts.map(({ text = '' }) => text).join('')).join('|')
