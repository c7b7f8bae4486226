import type { Socket } from 'node:net'

/** How every connection of HTTP/2 begins (RFC 9113 §3.4). No method of HTTP/1.1 begins like it. */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n')

export interface Speakers {
  readonly http1: (socket: Socket) => void
  readonly http2: (socket: Socket) => void
  /** How long a connection may say nothing. */
  readonly timeoutMs: number
}

/** Hands a connection without TLS to the version that its first bytes speak. */
export function byPreface(socket: Socket, { http1, http2, timeoutMs }: Speakers): void {
  const timer = setTimeout(() => socket.destroy(), timeoutMs)
  const look = (): void => {
    const bytes = socket.read() as Buffer | null
    if (bytes === null) return
    socket.unshift(bytes)
    const length = Math.min(bytes.length, PREFACE.length)
    const isHttp2 = bytes.subarray(0, length).equals(PREFACE.subarray(0, length))
    if (isHttp2 && length < 3) return
    over()
    if (isHttp2) http2(socket)
    else http1(socket)
  }
  const over = (): void => {
    clearTimeout(timer)
    socket.off('readable', look).off('close', over).off('error', fail)
  }
  const fail = (): void => void socket.destroy()
  socket.on('readable', look).once('close', over).on('error', fail)
}
