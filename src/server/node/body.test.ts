import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { testServer } from '../../../test/support/test-server.ts'
import type { Route } from '../../core/ports/transport.ts'

const sizeOf = async (stream: ReadableStream<Uint8Array> | null): Promise<number> => {
  let size = 0
  for await (const chunk of stream as unknown as AsyncIterable<Uint8Array>) size += chunk.length
  return size
}

/** What a route gets of a body, by each of the ways in which it can read one. */
const WAYS: Record<string, (request: Request) => Promise<unknown>> = {
  text: (request) => request.text(),
  json: (request) => request.json(),
  bytes: async (request) => (await request.arrayBuffer()).byteLength,
  blob: async (request) => (await request.blob()).size,
  stream: (request) => sizeOf(request.body),
  clone: async (request) => {
    const copy = request.clone()
    return [(await request.text()).length, await sizeOf(copy.body)]
  },
  form: async (request) => (await request.formData()).get('field'),
  twice: async (request) => {
    await request.text()
    return request.text().then(
      () => 'read twice',
      () => 'refused',
    )
  },
  copy: async (request) => (await new Request(request).text()).length,
}
const routes: Route[] = [
  ...Object.entries(WAYS).map(([way, read]): Route => ({
    method: 'POST',
    path: `/${way}`,
    access: 'request',
    handle: async (request) => Response.json(await read(request)),
  })),
  { method: 'POST', path: '/by-call', access: 'request', body: 'text', handle: async (_, call) => Response.json(await call.text()) },
  { method: 'POST', path: '/unnamed', access: 'request', handle: async (_, call) => Response.json(await call.text()) },
]

const SIZES = [100, 16 * 1024, 16 * 1024 + 1, 64 * 1024 + 1, 1024 * 1024]
const FRAMINGS = {
  'with its length': (bytes: Uint8Array) => ({ body: bytes }),
  'in chunks': (bytes: Uint8Array) => ({ body: new Blob([Uint8Array.from(bytes)]).stream(), duplex: 'half' }),
}

test.each(Object.entries(FRAMINGS))('a body that comes %s is the same to whoever reads it, however large', async (_, framed) => {
  const { url } = await testServer({ routes })
  const post = async (way: string, bytes: Uint8Array, headers: Record<string, string> = {}) =>
    (await fetch(`${url}/${way}`, { method: 'POST', headers, ...framed(bytes) } as RequestInit)).json()
  for (const size of SIZES) {
    for (const letter of ['x', 'é', '語']) {
      const said = letter.repeat(Math.ceil(size / Buffer.byteLength(letter)))
      const bytes = Buffer.from(said)
      for (const way of ['text', 'by-call', 'unnamed']) expect(await post(way, bytes)).toBe(said)
      expect(await post('by-call', Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]))).toBe(said)
      expect(await post('text', Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]))).toBe(said)
      expect(await post('json', Buffer.from(JSON.stringify({ said })))).toEqual({ said })
      for (const way of ['bytes', 'blob', 'stream']) expect(await post(way, bytes)).toBe(bytes.length)
      expect(await post('clone', bytes)).toEqual([said.length, bytes.length])
      expect(await post('copy', bytes)).toBe(said.length)
      const form = `field=${encodeURIComponent(said)}`
      expect(await post('form', Buffer.from(form), { 'content-type': 'application/x-www-form-urlencoded' })).toBe(said)
      expect(await post('twice', bytes)).toBe('refused')
    }
  }
})

test('a body that is read by a copy of its request, or not to its end, is bounded and counted like any other', async () => {
  const own = {
    copy: async (request: Request) => new Response(String((await new Request(request, { headers: { a: 'b' } }).text()).length)),
    peek: async (request: Request) => {
      const reader = request.body?.getReader()
      for (let size = 0; size < 20_000;) size += (await reader?.read())?.value?.length ?? Infinity
      return new Response()
    },
  }
  const { url, gateway } = await testServer({
    routes: Object.entries(own).map(([path, handle]): Route => ({ method: 'POST', path: `/${path}`, access: 'request', handle })),
    limits: { bodyBytes: 100_000 },
  })
  const post = (path: string, size: number) =>
    fetch(`${url}/${path}`, { method: 'POST', body: new Blob(['x'.repeat(size)]).stream(), duplex: 'half' } as RequestInit)
  expect(await (await post('copy', 100_000)).text()).toBe('100000')
  expect((await post('copy', 100_001)).status).toBe(413)
  expect((await post('peek', 90_000)).status).toBe(200)
  await expect.poll(() => gateway.heldBytes).toBe(0)
})

test('a body that came whole is read although its client has left', async () => {
  const got: number[] = []
  const late: Route = {
    method: 'POST',
    path: '/late',
    access: 'request',
    body: 'text',
    async handle(_, call) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      got.push((await call.text()).length)
      return new Response()
    },
  }
  const { port } = await testServer({ routes: [late] })
  for (const size of [300, 20_000, 60_000]) {
    const client = connect(port, '127.0.0.1')
    client.write(`POST /late HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${size}\r\n\r\n${'x'.repeat(size)}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
    client.destroy()
    await expect.poll(() => got.at(-1)).toBe(size)
  }
})
