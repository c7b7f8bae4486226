import { sseParser } from '../../src/wire/sse-parse.ts'

/** A chunk or a completion, as it came over the wire. */
export type Wire = any // eslint-disable-line

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Wire
}

/** One request to a JSON endpoint. */
export async function ask(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, body: await response.json() }
}

export interface Chunks {
  readonly chunks: Wire[]
  /** Every data text in order, `[DONE]` among them. */
  readonly data: string[]
  readonly raw: string
}

/** One streamed answer, read to its end. */
export async function stream(url: string, body: object, headers: Record<string, string> = {}): Promise<Chunks> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ ...body, stream: true }),
  })
  const raw = await response.text()
  if (!response.ok)
    throw Object.assign(new Error(`${response.status} ${raw}`), { status: response.status, body: JSON.parse(raw) as unknown })
  const data = [...sseParser()(raw)].map((event) => event.data)
  return { chunks: data.filter((text) => text !== '[DONE]').map((text) => JSON.parse(text) as Wire), data, raw }
}

/** What the deltas of one choice say in a field. */
export function joined(chunks: readonly Wire[], field: string, index = 0): string {
  return chunks
    .flatMap(({ choices }) => choices.filter((choice: Wire) => choice.index === index))
    .map(({ delta }) => delta[field] ?? '')
    .join('')
}

export const user = (content: unknown) => ({ role: 'user', content })
