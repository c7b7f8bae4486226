/** What the bindings of all generations share: what a method gets and gives, and how a task's stream is written. */
import type { Call, Frame, Host, KnownCall, Streamed, Texts } from '../../core/ports/transport.ts'
import type { UampError } from '../../protocol/errors.ts'
import { jsonText } from '../../protocol/json.ts'
import { SSE_HEADERS, SSE_HEARTBEAT, sseLine } from '../../wire/sse.ts'
import type { Generation, PushConfigs, StreamBatch, StreamEvent, StreamVisitor, TaskStream, Tasks } from './model.ts'
import type { A2aOptions } from './options.ts'

/** An extension that the card lists. */
interface CardExtension {
  readonly uri: string
  readonly description?: string
  /** Whoever does not activate it is refused. */
  readonly required?: boolean
  readonly params?: Readonly<Record<string, unknown>>
}

/** The agent's cards. */
export interface Cards {
  /** The public card, at both well-known paths. */
  respond(call: Call): Promise<Response>
  /** The card for those who are known, as `generation` has it if that is clear. Throws where there is none. */
  extended(call: KnownCall, generation?: Generation): Promise<object>
  /** What the card of the called agent lists. */
  extensions(call: Call): readonly CardExtension[]
}

/** What every part of the transport works with. */
export interface Parts {
  readonly host: Host
  readonly tasks: Tasks
  readonly push: PushConfigs
  readonly card: Cards
  readonly options: A2aOptions
}

/** What a method gets beside its parameters. */
export interface RpcContext extends Parts {
  readonly call: KnownCall
  /** The extensions that the client asked for and the agent has. */
  readonly extensions: readonly string[]
}

/** One event in the shape of a generation. Undefined where that generation has nothing for it. */
export type Shape = (event: StreamEvent) => object | undefined

export type RpcResult = { readonly result: object | null } | { readonly stream: TaskStream; readonly shape: Shape }

/** `params` as they came: a method parses them, and throws what `errors.ts` makes. */
export type Method = (context: RpcContext, params: unknown) => Promise<RpcResult>

export type Methods = Readonly<Record<string, Method>>

/** One event as lines of server-sent events, all but `id:`. Empty: it is left out. */
export type Lines = (event: StreamEvent) => string

/** Lines of a JSON-RPC stream: each event is the result of a response of its own. */
export function rpcLines(id: string | number | null, shape: Shape): Lines {
  const head = `data: {"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`
  return (event) => {
    const result = shape(event)
    return result === undefined ? '' : `${head}${JSON.stringify(result)}}\n\n`
  }
}

/** Lines of a REST stream: the event itself. */
export function restLines(shape: Shape): Lines {
  return (event) => {
    const shown = shape(event)
    return shown === undefined ? '' : `data: ${JSON.stringify(shown)}\n\n`
  }
}

export interface StreamAnswerOptions {
  readonly headers?: Readonly<Record<string, string>>
  /** An error as this binding writes it into a stream. */
  readonly failed?: (error: UampError) => string
}

/** A task's stream as the answer to a request. */
export function streamAnswer(stream: TaskStream, lines: Lines, { headers = {}, failed }: StreamAnswerOptions = {}): Streamed {
  return {
    status: 200,
    headers: { ...SSE_HEADERS, ...headers },
    frames: streamFrames(stream, lines),
    heartbeat: SSE_HEARTBEAT,
    // Whoever comes back after anything else goes on; what cannot be told never will be.
    failure: (error) => (error.code === 'too_large' && failed ? sseLine(failed(error)) : undefined),
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

/** Where the text of a chunk stands in its JSON. Inside a string its quotes would be escaped, so it is found nowhere else. */
const EMPTY_TEXT = '"text":""'

/** Writes the events of one stream. A chunk of text is written into the event that an empty one would be: only the text is quoted. */
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

  text(text: string, { artifactId, first, seq }: Parameters<StreamVisitor['text']>[1]): void {
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
