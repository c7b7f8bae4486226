/** The work that is timed. The names are those of OpenTelemetry's GenAI conventions, where there is one. */
export type Work = 'invoke_agent' | 'chat' | 'execute_tool' | 'upstream'

/** Facts about a piece of work, by OpenTelemetry's names. Never what was said, and never a secret. */
export type Attributes = Readonly<Record<string, string | number | undefined>>

/** The request, or the connection, that something is done for. Core passes it on, and knows no library that records it. */
export interface Trace {
  readonly requestId: string
  /** What every log line says that is written because of the request. */
  readonly fields: Readonly<Record<string, string>>
  /** How many servers have passed the request on before it came here. */
  readonly hops: number
  /** Headers of calls to other servers, which make their work a part of the same trace. */
  readonly headers: Readonly<Record<string, string>>
  /** Begins a piece of work. Whoever begins it ends it. */
  begin(work: Work, name: string, attributes?: Attributes): Span
}

/** A piece of work. It is itself the trace of what is done within it. */
export interface Span extends Trace {
  set(attributes: Attributes): void
  /** Runs code whose own spans, if it makes some, shall be within this one. */
  run<T>(code: () => T): T
  /** `error`: a code, if it failed. Only the first call counts. */
  end(error?: string): void
}
