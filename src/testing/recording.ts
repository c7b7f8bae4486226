import { isSecretHeader } from '../core/secrets/secret-names.ts'
import { base64, fromBase64 } from '../protocol/base64.ts'

/**
 * A recording of HTTP traffic, one JSON value a line. Exchanges may overlap, so every line names its own by `id`; `at` is in
 * milliseconds since the recording began. Bytes that are not UTF-8 on their own (a character cut in two) are base64.
 */
export type RecordedLine =
  | ({ readonly type: 'request'; readonly method: string; readonly url: string; readonly headers: RecordedHeaders } & Stamp & Payload)
  | ({ readonly type: 'answer'; readonly status: number; readonly headers: RecordedHeaders } & Stamp)
  | ({ readonly type: 'chunk' } & Stamp & Payload)
  /** `error`: the connection broke. `left`: the reader went away before the end. Neither: the answer was read to its end. */
  | ({ readonly type: 'end'; readonly error?: string; readonly left?: true } & Stamp)

interface Stamp {
  readonly id: number
  readonly at: number
}

interface Payload {
  readonly text?: string
  readonly base64?: string
}

type RecordedHeaders = Readonly<Record<string, string>>

/** One request and what came back. `answer` is absent if none came, `end` if the recording stops before it. */
export interface Exchange {
  readonly request: Extract<RecordedLine, { type: 'request' }>
  readonly answer?: Extract<RecordedLine, { type: 'answer' }>
  readonly chunks: readonly Extract<RecordedLine, { type: 'chunk' }>[]
  readonly end?: Extract<RecordedLine, { type: 'end' }>
}

/** Sorts a recording, given as the text of its file or as its lines, into exchanges in the order of their requests. */
export function readRecording(recording: string | Iterable<string>): Exchange[] {
  const exchanges = new Map<number, { -readonly [K in keyof Exchange]: Exchange[K] } & { chunks: Exchange['chunks'][number][] }>()
  let number = 0
  for (const text of typeof recording === 'string' ? recording.split('\n') : recording) {
    number++
    if (text.trim() === '') continue
    const line = parseLine(text, number)
    if (line.type === 'request') {
      exchanges.set(line.id, { request: line, chunks: [] })
      continue
    }
    const exchange = exchanges.get(line.id)
    if (!exchange) throw new SyntaxError(`Line ${number} of the recording: no request has the id ${line.id}`)
    if (line.type === 'chunk') exchange.chunks.push(line)
    else if (line.type === 'answer') exchange.answer = line
    else exchange.end = line
  }
  return [...exchanges.values()]
}

const TYPES = new Set(['request', 'answer', 'chunk', 'end'])

function parseLine(text: string, number: number): RecordedLine {
  let line: RecordedLine | null
  try {
    line = JSON.parse(text) as RecordedLine | null
  } catch (cause) {
    throw new SyntaxError(`Line ${number} of the recording is not JSON`, { cause })
  }
  if (line && TYPES.has(line.type) && typeof line.id === 'number') return line
  throw new SyntaxError(`Line ${number} of the recording is not a request, answer, chunk or end with an id`)
}

/** Text if it can be read back byte for byte, else base64. */
export function toPayload(bytes: string | Uint8Array | undefined): Payload {
  if (bytes === undefined) return {}
  if (typeof bytes === 'string') return { text: bytes }
  try {
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) }
  } catch {
    return { base64: base64(bytes) }
  }
}

export function fromPayload({ text, base64: encoded }: Payload): Uint8Array {
  return encoded === undefined ? new TextEncoder().encode(text ?? '') : fromBase64(encoded)
}

const LEFT_OUT = '[left out]'

/** Keeps the names, which show that a key was sent. */
export function withoutSecrets(headers: Iterable<readonly [string, string]>): RecordedHeaders {
  const kept: Record<string, string> = {}
  for (const [name, value] of headers) kept[name.toLowerCase()] = isSecretHeader(name) ? LEFT_OUT : value
  return kept
}

/** Addresses hold keys, too: Gemini's `?key=`, and `user:password@host`. */
export function withoutSecretsInUrl(text: string): string {
  const url = new URL(text)
  url.username = ''
  url.password = ''
  for (const name of [...url.searchParams.keys()]) if (isSecretHeader(name)) url.searchParams.set(name, LEFT_OUT)
  return url.href
}
