/** How a task's stream is written, in whatever generation and binding. */
import type { Frame, Streamed, Texts } from '../../core/ports/transport.ts'
import type { UampError } from '../../protocol/errors.ts'
import { jsonText } from '../../protocol/json.ts'
import type { RpcId } from '../../wire/json-rpc.ts'
import { SSE_HEADERS, SSE_HEARTBEAT, sseLine } from '../../wire/sse.ts'
import type { Place, StreamBatch, StreamEvent, StreamVisitor, TaskStream } from './model.ts'

/** One event as what a generation makes of it: mostly one object, several where it has no event for a whole task, or none. */
export type Shape = (event: StreamEvent) => readonly object[]

/** One event as lines of server-sent events, all but `id:`. An empty text is not written. */
export type Lines = (event: StreamEvent) => string

/** Lines of a JSON-RPC stream: each object is the result of a response of its own. */
export function rpcLines(id: RpcId, shape: Shape): Lines {
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`
  return linesOf(shape, (shown) => `${head}${JSON.stringify(shown)}}`)
}

/** Lines of a REST stream: each object itself. */
export function restLines(shape: Shape): Lines {
  return linesOf(shape, (shown) => JSON.stringify(shown))
}

function linesOf(shape: Shape, write: (shown: object) => string): Lines {
  return (event) =>
    shape(event)
      .map((shown) => sseLine(write(shown)))
      .join('')
}

export interface StreamAnswerOptions {
  readonly headers?: Readonly<Record<string, string>>
  /** An error as this binding writes it into a stream. */
  readonly failed?: (error: UampError) => string
}

const TOLD: ReadonlySet<UampError['code']> = new Set(['too_large', 'unauthorized'])

/** A task's stream as the answer to a request. */
export function streamAnswer(stream: TaskStream, lines: Lines, { headers = {}, failed }: StreamAnswerOptions = {}): Streamed {
  return {
    status: 200,
    headers: { ...SSE_HEADERS, ...headers },
    frames: streamFrames(stream, lines),
    heartbeat: SSE_HEARTBEAT,
    // A client that comes back after another error goes on from there. What is too large fails each time, and so does an old token.
    failure: (error) => (failed && TOLD.has(error.code) ? sseLine(failed(error)) : undefined),
  }
}

/** Not a generator: one that waits for its next batch would keep the last one alive. */
export function streamFrames(stream: TaskStream, lines: Lines): AsyncIterable<Frame, Frame | void> {
  return {
    [Symbol.asyncIterator]() {
      const batches = stream.batches[Symbol.asyncIterator]()
      const writer = new StreamWriter(stream, lines)
      return {
        async next(): Promise<IteratorResult<Frame, Frame | void>> {
          const { done, value } = await batches.next()
          if (!done) return { done: false, value: writer.texts(value) }
          return { done: true, value: value ? writer.texts(value) : undefined }
        },
        async return(): Promise<IteratorResult<Frame, Frame | void>> {
          await batches.return?.()
          return { done: true, value: undefined }
        },
      }
    },
  }
}

/** What stands before and after the text of a chunk. */
interface Template {
  readonly artifactId: string
  readonly first: boolean
  readonly before: string
  readonly after: string
}

/** Where the text of a chunk stands in its JSON. Inside a string the quotes would be escaped, so it is found nowhere else. */
const EMPTY_TEXT = '"text":""'

/** Writes the events of one stream. A chunk of text goes into the event that an empty chunk would be, so only its text is quoted. */
class StreamWriter implements StreamVisitor {
  readonly #stream: TaskStream
  readonly #lines: Lines
  #visit: (text: string) => void = () => undefined
  #template: Template | undefined

  constructor(stream: TaskStream, lines: Lines) {
    this.#stream = stream
    this.#lines = lines
  }

  /** Made while it is written, so that no text is kept. */
  texts(batch: StreamBatch): Texts {
    return {
      eachText: (visit) => {
        this.#visit = visit
        batch.visit(this)
      },
    }
  }

  text(text: string, { artifactId, first, seq }: Place): void {
    let template = this.#template
    if (template?.artifactId !== artifactId || template.first !== first) template = this.#template = this.#templateOf(artifactId, first)
    if (template.before === '') return
    const body = template.before + jsonText(text) + template.after
    this.#visit(seq === undefined ? body : 'id: ' + seq + '\n' + body)
  }

  event(event: StreamEvent, seq: string | undefined): void {
    const body = this.#lines(event)
    if (body !== '') this.#visit(seq === undefined ? body : 'id: ' + seq + '\n' + body)
  }

  #templateOf(artifactId: string, first: boolean): Template {
    const { taskId, contextId } = this.#stream
    const artifact = { artifactId, parts: [{ text: '' }] }
    const lines = this.#lines({ artifactUpdate: { taskId, contextId, artifact, append: !first } })
    const at = lines.indexOf(EMPTY_TEXT)
    if (at < 0) return { artifactId, first, before: '', after: '' }
    const end = at + EMPTY_TEXT.length
    return { artifactId, first, before: lines.slice(0, end - 2), after: lines.slice(end) }
  }
}
