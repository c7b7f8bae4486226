/** What an A2A agent tells, whatever the generation, and what a wire must do with it. */
import type { IncomingMessage, ServerResponse } from 'node:http'

export type Fields = Record<string, any> // eslint-disable-line

export type State = 'submitted' | 'working' | 'completed' | 'failed' | 'canceled' | 'rejected' | 'input-required' | 'auth-required'
export type Part =
  { text: string } | { raw: string; mediaType: string; filename?: string } | { url: string; mediaType: string } | { data: unknown }
export interface Said {
  readonly parts: readonly Part[]
  readonly id?: string
  readonly metadata?: Fields
}
export interface Made {
  readonly id: string
  readonly parts: readonly Part[]
  readonly name?: string
}

/** What an agent tells, whatever the wire. */
export type Event =
  | { readonly task: State; readonly said?: Said; readonly made?: readonly Made[]; readonly metadata?: Fields }
  | { readonly status: State; readonly said?: Said; readonly metadata?: Fields }
  | { readonly artifact: Made; readonly append?: boolean }
  | { readonly message: Said }

export const TASK = 'task-1'
export const CONTEXT = 'context-1'

/** One call of ours. */
export interface Call {
  readonly op: 'send' | 'stream' | 'get' | 'cancel' | 'subscribe'
  readonly request: IncomingMessage
  readonly body: Fields
  /** The message, as it was sent. */
  readonly message: Fields
  readonly taskId: string | undefined
  readonly contextId: string | undefined
  readonly texts: readonly string[]
}

export interface Reply {
  /** In one piece. */
  whole(event: Event): void
  /** As a stream, which stays open. */
  tell(...events: Event[]): void
  /** With the id that a client may come back with. */
  tellAs(id: string, event: Event): void
  end(): void
  /** As if the network went away. */
  cut(): void
  refuse(code: number, message: string): void
  readonly response: ServerResponse
}

export interface Wire {
  readonly name: string
  readonly cardPath: string
  /** How it names a task's state. */
  card(url: string, streaming: boolean): Fields
  /** What a request asks for; undefined where there is no such method. */
  read(request: IncomingMessage, body: Fields): Pick<Call, 'op' | 'message' | 'taskId' | 'contextId'> | undefined
  encode(event: Event): Fields
  /** How an answer or an event of a stream is wrapped. */
  wrap(result: Fields, body: Fields): Fields
  failure(code: number, message: string, body: Fields): { readonly status: number; readonly body: Fields }
}

export const ids = { taskId: TASK, contextId: CONTEXT }
export const FINAL: ReadonlySet<State> = new Set<State>(['completed', 'failed', 'canceled', 'rejected', 'input-required'])

export const rpcWrap = (result: Fields, body: Fields): Fields => ({ jsonrpc: '2.0', id: body['id'], result })
export const rpcFailure = (code: number, message: string, body: Fields): { status: number; body: Fields } => ({
  status: 200,
  body: { jsonrpc: '2.0', id: body['id'] ?? null, error: { code, message } },
})
export type Op = Call['op']
export const rpcRead = (methods: Record<string, Op>) => (request: IncomingMessage, body: Fields) => {
  const op = request.url === '/agent' ? methods[body['method']] : undefined
  const { message = {}, id } = body['params'] ?? {}
  return op && { op, message, taskId: message.taskId ?? id, contextId: message.contextId }
}
