import { expect } from 'vitest'
import { parseSse } from '../../src/wire/sse-parse.ts'

/** Whatever came over the wire. */
export type Wire = any // eslint-disable-line

export interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly body: Wire
}

type Extra = Readonly<Record<string, string>>

/** One request, and its answer as JSON. */
export async function ask(url: string, init: { method?: string; body?: unknown; headers?: Extra } = {}): Promise<Answered> {
  const { method = 'GET', body, headers = {} } = init
  const response = await fetch(url, {
    method,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
}

export interface Event {
  readonly id: string | undefined
  readonly event: string | undefined
  readonly data: Wire
}

/** One request, and its answer as server-sent events. Leaving it closes the connection. */
export async function* listen(url: string, init: { method?: string; body?: unknown; headers?: Extra } = {}): AsyncGenerator<Event, void> {
  const { method = 'POST', body, headers = {} } = init
  const response = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
  if (!response.body) throw new Error('no body')
  for await (const { id, event, data } of parseSse(response.body)) yield { id, event, data: JSON.parse(data) }
}

/** A client of the JSON-RPC endpoint that does nothing for its user but the envelope. */
export function rpc(base: string, token?: string) {
  const url = `${base}/a2a`
  const auth: Extra = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const envelope = (method: string, params: unknown) => ({ jsonrpc: '2.0', id: 'r-1', method, params })
  return {
    /** The whole answer of the endpoint. */
    post: (body: unknown, headers: Extra = {}) => ask(url, { method: 'POST', body, headers: { ...auth, ...headers } }),
    async call(method: string, params?: unknown): Promise<Wire> {
      const { status, body } = await ask(url, { method: 'POST', body: envelope(method, params), headers: auth })
      expect({ status, jsonrpc: body.jsonrpc, id: body.id }).toEqual({ status: 200, jsonrpc: '2.0', id: 'r-1' })
      expect(Object.keys(body)).toHaveLength(3)
      return 'result' in body ? { result: body.result } : { error: body.error }
    },
    async *stream(method: string, params: unknown, headers: Extra = {}): AsyncGenerator<Wire, void> {
      for await (const { data } of listen(url, { body: envelope(method, params), headers: { ...auth, ...headers } })) {
        const { jsonrpc, id, result, ...rest } = data
        expect({ jsonrpc, id, rest }).toEqual({ jsonrpc: '2.0', id: 'r-1', rest: {} })
        yield result
      }
    },
  }
}

export async function all<T>(events: AsyncIterable<T>): Promise<T[]> {
  const seen: T[] = []
  for await (const event of events) seen.push(event)
  return seen
}

/** What any id and any time look like. */
export const ID: Wire = expect.stringMatching(/^\S+$/)
export const TIME: Wire = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

let made = 0
export const newId = (): string => `m-${++made}`

/** A message of 0.2 and 0.3. */
export function message(text: string, more: object = {}): Wire {
  return { kind: 'message', messageId: newId(), role: 'user', parts: [{ kind: 'text', text }], ...more }
}

/** A message of 0.1, and of `/tasks`. */
export function early(text: string): Wire {
  return { role: 'user', parts: [{ type: 'text', text }] }
}
