import type { Scripted } from './upstream/server.ts'

/** A stream of these events, as it is: what no fixture has. A text is sent as it stands, such as `[DONE]`. */
export function streamOf(...events: readonly (object | string)[]): Scripted {
  const body = events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join('')
  return { status: 200, headers: { 'content-type': 'text/event-stream' }, body }
}

/** An answer in one piece. */
export function wholeOf(answer: object, status = 200): Scripted {
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(answer) }
}

/** A chunk of Chat Completions. */
export function chunk(delta: object, finish_reason: string | null = null): object {
  return { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] }
}
