import { isAscii } from 'node:buffer'
import { PACE_BYTES, SlowBody, type BodyCount } from '../bodies.ts'
import type { Incoming } from './caller.ts'

const decoder = new TextDecoder()

/** Reads a body from the socket: the web streams between it and a `Request` cost more than most agents do. */
export function bodyText(incoming: Incoming | undefined, count: BodyCount): Promise<string> | undefined {
  const { rawBody } = (incoming ?? {}) as { rawBody?: unknown }
  if (Buffer.isBuffer(rawBody)) return counted(rawBody, count)
  // The connection is gone, or somebody has begun to read: the request itself knows what is left.
  if (!incoming || incoming.destroyed || incoming.readableDidRead) return undefined
  return readBody(incoming, count).then(
    // Most JSON is ASCII, which needs no decoding.
    (bytes) => (isAscii(bytes) ? bytes.toString('latin1') : decoder.decode(bytes)),
  )
}

/** A body that is there already, such as from a body parser of Express. */
async function counted(bytes: Buffer, count: BodyCount): Promise<string> {
  try {
    count.add(bytes.length)
    return decoder.decode(bytes)
  } finally {
    count.close()
  }
}

function readBody(incoming: Incoming, count: BodyCount): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let gained = 0
    let timer: NodeJS.Timeout | undefined
    const over = (): void => {
      clearTimeout(timer)
      incoming.off('data', take).off('end', end).off('error', fail).off('close', close)
      count.close()
    }
    const fail = (error: unknown): void => {
      over()
      incoming.pause()
      reject(error as Error)
    }
    const take = (chunk: Buffer): void => {
      try {
        count.add(chunk.length)
      } catch (error) {
        fail(error)
        return
      }
      chunks.push(chunk)
      gained += chunk.length
      if (count.rest === 0 || !count.isHeld || gained < PACE_BYTES) return
      gained = 0
      if (timer) timer.refresh()
      else timer = setTimeout(() => fail(new SlowBody()), count.stallMs)
    }
    const end = (): void => {
      over()
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks))
    }
    const close = (): void => {
      if (incoming.readableEnded) end()
      else fail(incoming.errored ?? Object.assign(new Error('The connection closed'), { code: 'ECONNRESET' }))
    }
    incoming.on('data', take).on('end', end).on('error', fail).on('close', close)
  })
}
