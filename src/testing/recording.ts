/**
 * A recording: what went over the wire, one JSON value a line. Exchanges may overlap, so every line names its own by `id`;
 * `at` is in milliseconds since the recording began. Bytes that are not UTF-8 by themselves (a character cut in two) are base64.
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

export interface Payload {
  readonly text?: string
  readonly base64?: string
}

export type RecordedHeaders = Readonly<Record<string, string>>

/** One request and what came back. Without `answer` no answer came; without `end` the recording stops in its middle. */
export interface Exchange {
  readonly request: Extract<RecordedLine, { type: 'request' }>
  readonly answer?: Extract<RecordedLine, { type: 'answer' }>
  readonly chunks: readonly Extract<RecordedLine, { type: 'chunk' }>[]
  readonly end?: Extract<RecordedLine, { type: 'end' }>
}

/** A recording, as the text of its file or as its lines, sorted into exchanges in the order of their requests. */
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
  throw new SyntaxError(`Line ${number} of the recording is no request, answer, chunk or end with an id`)
}
