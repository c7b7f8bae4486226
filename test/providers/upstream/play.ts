import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { Delivery } from './scenario.ts'

const SLOW_MS = 20
const COMMENT_MS = 2

export interface Playing {
  readonly how: ReadonlySet<Delivery>
  /** The vendor's error as an event of the stream, and as the body of a refusal. */
  readonly failure: string
  readonly bareFailure: string
  /** Destroys the socket. */
  readonly cut: () => void
}

/** Sends the events of a stream in the way that was asked for. Returns when the answer has ended, or its reader has gone. */
export async function play(
  response: ServerResponse,
  events: readonly string[],
  { how, failure, bareFailure, cut }: Playing,
): Promise<void> {
  const framed = events.map((event) => frame(event, how))
  const half = Math.ceil(framed.length / 2)
  const broken = (['stall', 'endless-comments', 'cut', 'half', 'short', 'failing', 'failing-bare'] as const).find((way) => how.has(way))
  await send(response, broken ? framed.slice(0, half) : framed, how)
  switch (broken) {
    case 'stall':
      return
    case 'endless-comments':
      while (await put(response, ': still here\n\n')) await sleep(COMMENT_MS)
      return
    case 'cut':
      cut()
      return
    case 'half':
      await put(response, (framed[half] ?? '').slice(0, (framed[half]?.length ?? 0) / 2))
      break
    case 'failing':
      await put(response, frame(failure, how))
      break
    case 'failing-bare':
      await put(response, bareFailure)
      break
    case 'short':
    case undefined:
      break
  }
  response.end()
}

function frame(event: string, how: ReadonlySet<Delivery>): string {
  const text = how.has('comments') ? `: keep-alive\n\n${event}` : event
  return how.has('crlf') ? text.replaceAll('\r\n', '\n').replaceAll('\n', '\r\n') : text
}

async function send(response: ServerResponse, events: readonly string[], how: ReadonlySet<Delivery>): Promise<void> {
  for (const piece of pieces(events, how)) {
    if (!(await put(response, piece))) return
    await (how.has('slow') ? sleep(SLOW_MS) : nextTurn())
  }
}

/** What each write holds. */
export function* pieces(events: readonly string[], how: ReadonlySet<Delivery>): Generator<string | Uint8Array, void> {
  if (how.has('split')) {
    const bytes = Buffer.from(events.join(''))
    for (let at = 0; at < bytes.length; at += 3) yield bytes.subarray(at, at + 3)
  } else if (how.has('burst')) yield events.join('')
  else yield* events
}

/** Writes, and waits while the reader does not read. False once it has gone. */
async function put(response: ServerResponse, data: string | Uint8Array): Promise<boolean> {
  if (response.destroyed || response.closed) return false
  if (!response.write(data)) {
    await new Promise<void>((resolve) => {
      const done = () => {
        response.off('drain', done).off('close', done)
        resolve()
      }
      response.on('drain', done).on('close', done)
    })
  }
  return !response.destroyed
}
