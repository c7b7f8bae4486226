import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { HttpClient, HttpRequest, Timeouts } from '../../src/core/ports/http.ts'

const LONG: Timeouts = { firstByteMs: 60_000, idleMs: 60_000, totalMs: 60_000 }
const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n'
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`

/** A server that says what it likes for as long as it is listened to: HTTP is written by hand. */
async function peer(talk: (socket: Socket, say: (text: string) => Promise<boolean>) => Promise<void>) {
  const gone: Promise<unknown>[] = []
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    gone.push(new Promise((resolve) => socket.once('close', resolve)))
    const say = async (text: string): Promise<boolean> => {
      if (socket.destroyed) return false
      if (!socket.write(text)) await Promise.race([once(socket, 'drain'), gone.at(-1)]).catch(() => undefined)
      return !socket.destroyed
    }
    socket.once('data', () => void talk(socket, say).catch(() => undefined))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, gone }
}

async function size(body: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0
  for await (const piece of body) bytes += piece.length
  return bytes
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** What every way to call the outside must do with a peer that never stops. */
export function httpClientContract(name: string, open: () => HttpClient): void {
  describe(`http client: ${name}`, () => {
    const ask = (url: string, more: Partial<HttpRequest> = {}) => {
      const request = { url, method: 'GET', headers: {}, signal: new AbortController().signal, maxBytes: 1_000, timeouts: LONG } as const
      return open().request({ ...request, ...more })
    }

    test('an answer of exactly so many bytes is read, and one more is too many', async () => {
      for (const [bytes, fits] of [
        [1_000, true],
        [1_001, false],
      ] as const) {
        const { url } = await peer(
          async (socket) => void socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${bytes}\r\n\r\n${'x'.repeat(bytes)}`),
        )
        const read = ask(url).then(({ body }) => size(body))
        if (fits) expect(await read).toBe(bytes)
        else await expect(read).rejects.toMatchObject({ name: 'QuotaExceededError' })
      }
    })

    test('a body without an end is cut, and so is the connection', async () => {
      const { url, gone } = await peer(async (_, say) => {
        await say(`${HEAD}\r\n`)
        while (await say(chunk('x'.repeat(10_000))));
      })
      const { body } = await ask(url, { maxBytes: 1_000_000 })
      await expect(size(body)).rejects.toMatchObject({ name: 'QuotaExceededError', message: 'The answer has more than 1000000 bytes' })
      await gone[0]
    })

    test('a trickle without an end is over with its time', async () => {
      const { url, gone } = await peer(async (_, say) => {
        await say(`${HEAD}\r\n`)
        while (await say(chunk(':\n'))) await pause(5)
      })
      const { body } = await ask(url, { maxBytes: 1_000_000, timeouts: { ...LONG, totalMs: 300 } })
      await expect(size(body)).rejects.toMatchObject({ name: 'TimeoutError', message: 'The answer took longer than 300 ms' })
      await gone[0]
    })

    test.each([
      ['one header line', 'x-long: ', 'x'.repeat(1_000)],
      ['header after header', '', `x-many: ${'x'.repeat(100)}\r\n`],
    ])('%s without an end is cut', async (_, begin, more) => {
      const { url, gone } = await peer(async (socket, say) => {
        await say(HEAD + begin)
        while ((await say(more)) && socket.writable);
      })
      await expect(ask(url)).rejects.toThrow()
      await gone[0]
    })

    test('headers that trickle are over with their time', async () => {
      const { url, gone } = await peer(async (_, say) => {
        await say(`${HEAD}x-long: `)
        while (await say('x')) await pause(20)
      })
      await expect(ask(url, { timeouts: { ...LONG, totalMs: 300 } })).rejects.toMatchObject({ name: 'TimeoutError' })
      await gone[0]
    })

    test('answers before the answer, without an end, are over with their time', async () => {
      const { url, gone } = await peer(async (_, say) => {
        while (await say('HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n')) await pause(5)
      })
      await expect(ask(url, { timeouts: { ...LONG, totalMs: 300 } })).rejects.toThrow()
      await gone[0]
    })

    test('an answer that nobody reads is let go of with its time', async () => {
      const { url, gone } = await peer(async (_, say) => void (await say(`${HEAD}\r\n${chunk('x')}`)))
      await ask(url, { timeouts: { ...LONG, totalMs: 100 } })
      await gone[0]
    })

    test('a request without its bounds is refused, also where no types are checked', async () => {
      const { url } = await peer(async (socket) => void socket.end('HTTP/1.1 204 No Content\r\n\r\n'))
      // @ts-expect-error: both are required.
      const request: HttpRequest = { url, method: 'GET', headers: {}, signal: new AbortController().signal }
      const endless = { ...request, maxBytes: Infinity, timeouts: { ...LONG, totalMs: Infinity } }
      for (const asked of [request, endless]) await expect((async () => open().request(asked))()).rejects.toThrow(/maxBytes/)
    })
  })
}
