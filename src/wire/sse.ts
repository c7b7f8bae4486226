/** Headers of a server-sent event stream that no proxy may hold back or keep. */
export const SSE_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
} as const

/** One event whose data is a single line, as JSON always is. */
export function sseLine(data: string, id?: number | string): string {
  return id === undefined ? 'data: ' + data + '\n\n' : 'id: ' + id + '\ndata: ' + data + '\n\n'
}

/** A comment: it says nothing but that the stream is alive. */
export const SSE_HEARTBEAT = ': keep-alive\n\n'
