/** Headers of a server-sent event stream. Proxies must not buffer or cache it. */
export const SSE_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
} as const

/** One event whose data is a single line, like JSON. */
export function sseLine(data: string, id?: number | string): string {
  return id === undefined ? 'data: ' + data + '\n\n' : 'id: ' + id + '\ndata: ' + data + '\n\n'
}

/** A comment, which only shows that the stream is alive. */
export const SSE_HEARTBEAT = ': keep-alive\n\n'
