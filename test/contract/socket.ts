import { describe, expect, test } from 'vitest'
import type { Socket } from '../../src/core/ports/transport.ts'

/** The other end of a socket under test. */
export interface Peer {
  send(message: string | Uint8Array): void
  /** Bytes given to `send` that have not left. */
  readonly unsent: number
  /** Messages that came, in order. */
  next(): Promise<string>
  /** Stops reading from the network, and goes on. */
  pause(): void
  resume(): void
  close(code?: number, reason?: string): void
  /** Goes without a word. */
  vanish(): void
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>
}

/** Opens one connection whose server end is handed to `handle`. */
export type OpenPair = (handle: (socket: Socket) => Promise<void>) => Promise<Peer>

const kilobyte = 'x'.repeat(1024)

/** Resolves to true when the promise does within some turns of the event loop, and is false while it waits. */
async function settles(promise: Promise<unknown>, ms = 100): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), ms)))
  const result = await Promise.race([promise.then(() => true), late])
  clearTimeout(timer)
  return result
}

/** Sends until the socket says to wait. */
async function fill(socket: Socket): Promise<{ sent: number; waiting: Promise<void> }> {
  const batch = Array.from({ length: 64 }, () => kilobyte)
  for (let sent = batch.length; ; sent += batch.length) {
    const waiting = socket.send(batch)
    if (!(await settles(waiting, 200))) return { sent, waiting }
    if (sent > 1_000_000) throw new Error('it never made the writer wait')
  }
}

export function socketContract(name: string, open: OpenPair): void {
  describe(`socket: ${name}`, () => {
    test('gives what the peer sends, in order, and ends when it closes', async () => {
      const got: unknown[] = []
      let ended!: () => void
      const end = new Promise<void>((resolve) => (ended = resolve))
      const peer = await open(async (socket) => {
        for await (const message of socket) got.push(message)
        ended()
      })
      for (const text of ['', 'one', 'zwölf', '\u{1f680}', kilobyte.repeat(70)]) peer.send(text)
      peer.close()
      await end
      expect(got).toEqual(['', 'one', 'zwölf', '\u{1f680}', kilobyte.repeat(70)])
    })

    test('gives binary messages as bytes', async () => {
      let received!: (message: unknown) => void
      const message = new Promise<unknown>((resolve) => (received = resolve))
      const peer = await open(async (socket) => {
        for await (const each of socket) received(each)
      })
      peer.send(new Uint8Array([0, 255, 7]))
      expect(await message).toEqual(new Uint8Array([0, 255, 7]))
    })

    test('sends each frame as a message of its own, whatever its length', async () => {
      const lengths = [0, 1, 125, 126, 127, 65_535, 65_536, 300_000]
      const frames = lengths.flatMap((length) => ['a'.repeat(length), 'ü'.repeat(length), `${'a'.repeat(length)}€`])
      const peer = await open(async (socket) => {
        await socket.send(lengths.map((length) => 'b'.repeat(length)))
        await socket.send(frames)
        await socket.send([])
        await socket.send(['end'])
      })
      for (const length of lengths) expect(await peer.next()).toBe('b'.repeat(length))
      for (const frame of frames) expect((await peer.next()) === frame).toBe(true)
      expect(await peer.next()).toBe('end')
    })

    test('makes the writer wait for a peer that does not read, and loses nothing', async () => {
      let filled!: (count: number) => void
      const full = new Promise<number>((resolve) => (filled = resolve))
      const peer = await open(async (socket) => {
        const { sent, waiting } = await fill(socket)
        filled(sent)
        await waiting
        await socket.send(['last'])
      })
      peer.pause()
      const sent = await full
      peer.resume()
      for (let i = 0; i < sent; i++) expect((await peer.next()) === kilobyte).toBe(true)
      expect(await peer.next()).toBe('last')
    })

    test('lets a waiting writer go when the peer vanishes', async () => {
      let filled!: () => void
      const full = new Promise<void>((resolve) => (filled = resolve))
      let released!: () => void
      const release = new Promise<void>((resolve) => (released = resolve))
      const peer = await open(async (socket) => {
        const { waiting } = await fill(socket)
        filled()
        await waiting
        await socket.send(['into the void'])
        for await (const _ of socket) void _
        released()
      })
      peer.pause()
      await full
      peer.vanish()
      await release
    })

    test('stops reading when nobody takes the messages, and loses none', async () => {
      let go!: () => void
      const start = new Promise<void>((resolve) => (go = resolve))
      let count = 0
      let finished!: () => void
      const finish = new Promise<void>((resolve) => (finished = resolve))
      const peer = await open(async (socket) => {
        await start
        for await (const message of socket)
          if (message === 'end') break
          else count++
        finished()
      })
      const total = 20_000
      for (let i = 0; i < total; i++) peer.send(kilobyte)
      peer.send('end')
      await settles(new Promise(() => {}), 200)
      expect(peer.unsent).toBeGreaterThan(0)
      go()
      await finish
      expect(count).toBe(total)
    })

    test('goes on where an earlier loop was left', async () => {
      let received!: (messages: unknown[]) => void
      const messages = new Promise<unknown[]>((resolve) => (received = resolve))
      const peer = await open(async (socket) => {
        const got: unknown[] = []
        for await (const message of socket) {
          got.push(message)
          break
        }
        for await (const message of socket) {
          got.push(message)
          if (got.length === 3) break
        }
        received(got)
      })
      for (const text of ['one', 'two', 'three']) peer.send(text)
      expect(await messages).toEqual(['one', 'two', 'three'])
    })

    test('closes with a code and a reason, and then neither gives nor sends', async () => {
      let over!: () => void
      const end = new Promise<void>((resolve) => (over = resolve))
      const peer = await open(async (socket) => {
        socket.close(4321, 'enough')
        socket.close(4000, 'a second close says nothing')
        await socket.send(['too late'])
        for await (const message of socket) throw new Error(`got ${String(message)}`)
        over()
      })
      await end
      expect(await peer.closed).toEqual({ code: 4321, reason: 'enough' })
    })

    test('cuts a reason that is too long for a close frame', async () => {
      const peer = await open(async (socket) => socket.close(4000, '€'.repeat(500)))
      expect(await peer.closed).toEqual({ code: 4000, reason: '€'.repeat(41) })
    })
  })
}
