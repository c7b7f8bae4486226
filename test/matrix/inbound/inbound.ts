import { parseSse } from '../../../src/wire/sse-parse.ts'

/** Whatever came over the wire. */
export type Wire = any // eslint-disable-line

/** What a client heard of one answer. */
export interface Heard {
  readonly text: string
  /** Names of its tools that it was asked to run. */
  readonly calls: readonly string[]
  readonly error?: string | undefined
}

/** A client of one protocol that does nothing for its user but the protocol. */
export interface Caller {
  /** Says something and hears the answer. Calls of its tool are answered. */
  say(text: string): Promise<Heard>
  /** Says something, breaks it off at the first word, and gives what it was told then. */
  cancel(text: string): Promise<string>
}

export interface Inbound {
  readonly name: string
  /** The tool that its client has. */
  readonly tool: string
  readonly arguments: object
  /** What these are in its words. */
  readonly words: { readonly tool: string; readonly cancel: string; readonly error: string }
  connect(url: string): Promise<Caller>
}

/** What most protocols' clients bring. */
export const DOUBLE = {
  name: 'double',
  description: 'Twice a number',
  parameters: { type: 'object', properties: { n: { type: 'number' } } },
}
export const DOUBLE_FUNCTION = { type: 'function', function: DOUBLE } as const
export const CALL = { tool: 'double', arguments: { n: 4 } }

interface Options {
  readonly headers?: Readonly<Record<string, string>>
}

/** One request, and its answer event by event. Leaving it closes the connection. What is no stream is thrown. */
export async function* listen(url: string, body: object, { headers = {} }: Options = {}): AsyncGenerator<Wire, void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
    body: JSON.stringify(body),
  })
  if (!response.headers.get('content-type')?.startsWith('text/event-stream') || !response.body)
    throw new Error(`${response.status} ${await response.text()}`)
  for await (const { data } of parseSse(response.body)) if (data !== '[DONE]') yield JSON.parse(data)
}
