import { expect } from 'vitest'
import { sseParser } from '../../src/wire/sse-parse.ts'

/** A response, an item or an event as it came over the wire. */
export type Json = { readonly [field: string]: any } // eslint-disable-line

export interface Told extends Json {
  readonly type: string
  readonly sequence_number: number
}

interface Options {
  readonly token?: string
  readonly headers?: Record<string, string>
  readonly path?: string
  readonly signal?: AbortSignal
}

/** A client of Responses as plain as it can be. */
export function client(url: string, { token, path = '/v1/responses' }: Options = {}) {
  const call = async (
    method: string,
    to: string,
    { body, signal, headers }: { body?: unknown; signal?: AbortSignal; headers?: Record<string, string> } = {},
  ) =>
    fetch(url + path + to, {
      method,
      headers: { 'content-type': 'application/json', ...(token !== undefined && { authorization: `Bearer ${token}` }), ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...(signal && { signal }),
    })
  const json = async (response: Response): Promise<{ status: number; body: Json; headers: Headers }> => ({
    status: response.status,
    body: (await response.json()) as Json,
    headers: response.headers,
  })
  return {
    call,
    /** The answer as an object. */
    ask: async (body: unknown, headers?: Record<string, string>) => json(await call('POST', '', { body, ...(headers && { headers }) })),
    /** The answer as events. */
    stream: async (body: object, options: { signal?: AbortSignal } = {}) =>
      events(await call('POST', '', { body: { ...body, stream: true }, ...options })),
    get: async (id: string) => json(await call('GET', `/${id}`)),
    replay: async (id: string, after?: number, options: { signal?: AbortSignal } = {}) =>
      events(await call('GET', `/${id}?stream=true${after === undefined ? '' : `&starting_after=${after}`}`, options)),
    cancel: async (id: string) => json(await call('POST', `/${id}/cancel`)),
    remove: async (id: string) => json(await call('DELETE', `/${id}`)),
    items: async (id: string, query = '') => json(await call('GET', `/${id}/input_items${query}`)),
  }
}

/** The events of a stream, in pieces as they come. Throws what is not a stream. */
export async function* readEvents(response: Response): AsyncGenerator<Told, void> {
  if (!response.ok || !response.body) throw Object.assign(new Error(`${response.status}`), { body: await response.json() })
  const parse = sseParser()
  const decoder = new TextDecoder()
  for await (const bytes of response.body) {
    for (const { data, event } of parse(decoder.decode(bytes, { stream: true }))) {
      const told = JSON.parse(data) as Told
      if (event !== told.type) throw new Error(`The event ${told.type} is named ${event}`)
      yield told
    }
  }
}

async function events(response: Response): Promise<Told[]> {
  const all: Told[] = []
  for await (const told of readEvents(response)) all.push(told)
  return all
}

/** The text of the answer. */
export function textOf(response: Json): string {
  const parts = (response['output'] as Json[]).flatMap((item) => (item['type'] === 'message' ? (item['content'] as Json[]) : []))
  return parts.map((part) => (part['text'] as string | undefined) ?? '').join('')
}

export const deltasOf = (events: readonly Told[]): string =>
  events.map((event) => (event.type === 'response.output_text.delta' ? (event['delta'] as string) : '')).join('')

export const typesOf = (events: readonly Told[]): string[] => events.map(({ type }) => type.replace(/^response\./, ''))

/** A function that the client runs. */
export const fn = (name: string): object => ({ type: 'function', name, parameters: { type: 'object', properties: {} }, strict: false })

/** Nothing is said of an item before it is added, its deltas make its text, and the end holds all items as they were done. */
export function checkEvents(events: readonly Told[]): void {
  const done: Json[] = []
  const texts = new Map<string, string>()
  const added = new Set<string>()
  for (const event of events) {
    if (event.type === 'response.output_item.added') {
      expect(event['output_index']).toBe(added.size)
      added.add(event['item'].id as string)
    }
    if (event['item_id'] !== undefined) expect(added).toContain(event['item_id'])
    const key = `${event['item_id']} ${event['content_index'] ?? ''}`
    if (event.type.endsWith('.delta') && event['item_id'] !== undefined) texts.set(key, (texts.get(key) ?? '') + (event['delta'] as string))
    if (event.type === 'response.output_text.done') expect(texts.get(key)).toBe(event['text'])
    if (event.type.endsWith('_arguments.done')) expect(texts.get(key) ?? '').toBe(event['arguments'])
    if (event.type === 'response.output_item.done') done[event['output_index'] as number] = event['item'] as Json
  }
  expect(events.at(-1)?.['response'].output).toEqual(done)
  expect(done).toHaveLength(added.size)
}
