import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Cell, ReaderKind } from './cells.ts'
import { MANY_DELTAS, SIZES } from './said.ts'

/** How long the server of these tests lets a reader stand still, and how long that one does. */
export const STALL_MS = 600
const STOP_MS = 2000

const MIB = 1024 * 1024
/** About what 300,000 deltas take on the wire. */
const DELTAS_BYTES = 40 * MIB

/** How a client takes what is sent to it. One for all its connections: who has stopped once reads on for good. */
export class Pace {
  readonly kind: ReaderKind
  readonly #bytesPerMs: number
  #untilStop: number

  constructor({ reader, size }: Pick<Cell, 'reader' | 'size'>) {
    const bytes = size === MANY_DELTAS ? DELTAS_BYTES : SIZES[size]
    this.kind = reader
    // The larger ones in some seconds, the smaller ones in half of one: always slower than they are made.
    this.#bytesPerMs = Math.max(bytes / 2000, 2 * 1024)
    this.#untilStop = reader === 'stops' ? Math.max(1, bytes / 2) : Infinity
  }

  /** How long to wait before more is read, after so many bytes. */
  waitAfter(bytes: number): number {
    if (this.kind === 'slow') return bytes / this.#bytesPerMs
    this.#untilStop -= bytes
    if (this.#untilStop > 0) return 0
    this.#untilStop = Infinity
    return STOP_MS
  }
}

/** A proxy that takes what the server sends as the pace says. What is not taken stays in the server, and in the buffers of the kernel. */
export async function pacedProxy(port: number, pace: Pace): Promise<{ url: string; close: () => void }> {
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const target = connect(port, '127.0.0.1')
    for (const [from, to] of [
      [client, target],
      [target, client],
    ] as const) {
      sockets.add(from)
      from.setNoDelay(true)
      from.on('error', () => undefined)
      from.on('close', () => {
        sockets.delete(from)
        // What was read before is still to be written.
        to.end()
        if (from.errored || to === target) to.destroy()
      })
    }
    client.pipe(target)
    void forward(target, client, pace)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

async function forward(from: Socket, to: Socket, pace: Pace): Promise<void> {
  try {
    for await (const bytes of from as AsyncIterable<Buffer>) {
      if (to.destroyed) break
      if (!to.write(bytes)) await new Promise<void>((resolve) => to.once('drain', resolve).once('close', resolve))
      const ms = pace.waitAfter(bytes.length)
      if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
    }
    to.end()
  } catch {
    to.destroy()
  } finally {
    from.destroy()
  }
}
