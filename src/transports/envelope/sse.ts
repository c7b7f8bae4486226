import type { KnownCall, Streamed } from '../../core/ports/transport.ts'
import { SSE_HEADERS, sseLine } from '../../wire/sse.ts'
import { envelopeError } from '../../envelope/codes.ts'
import { problemOf } from './errors.ts'
import type { Run, Streams } from './streams.ts'

/** How soon an `EventSource` comes back. */
const RETRY = 'retry: 2000\n\n'
const HEARTBEAT = ': hb\n\n'

/** `GET /v1/stream/{id}`: one frame in each event, whose id is the number of the frame (UAMP envelope §7). */
export async function serveStream(streams: Streams, request: Request, call: KnownCall): Promise<Streamed> {
  const after = knownIn(request)
  const found = await streams.find(call.params['id'] ?? '', call)
  return {
    status: 200,
    headers: SSE_HEADERS,
    frames: texts(streams.follow(found, { after, signal: call.signal })),
    heartbeat: HEARTBEAT,
    failure: (error) => `event: problem\n${sseLine(JSON.stringify(problemOf(error)))}`,
  }
}

async function* texts(runs: AsyncGenerator<Run, void>): AsyncGenerator<string, string | undefined> {
  yield RETRY
  for await (const { frames, isLast } of runs) {
    const text = frames.map(({ seq, text: frame }) => sseLine(frame, seq)).join('')
    if (isLast) return text
    yield text
  }
  return undefined
}

/** The frame that a reader has; -1 for none. */
function knownIn(request: Request): number {
  const given = request.headers.get('last-event-id') ?? new URL(request.url).searchParams.get('after')
  if (given === null || given === '') return -1
  if (/^\d{1,15}$/.test(given)) return Number(given)
  throw envelopeError('4.00', 'Last-Event-ID must be the number of a frame', 'after')
}
