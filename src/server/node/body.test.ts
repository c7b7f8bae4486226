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
const routes = Object.entries(WAYS).map(([way, read]): Route => ({
  method: 'POST',
  path: `/${way}`,
  access: 'request',
  handle: async (request) => Response.json(await read(request)),
}))

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
      expect(await post('text', bytes)).toBe(said)
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
