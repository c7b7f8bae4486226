import { expect, test } from 'vitest'
import { jsonDocument } from './json-document.ts'

test('a document is made when it is first asked for, and once', async () => {
  let made = 0
  const answer = jsonDocument(() => ({ made: ++made }))
  expect(made).toBe(0)
  const get = (headers: Record<string, string> = {}) => answer(new Request('http://localhost/', { headers }))
  const first = get()
  expect([first.status, first.headers.get('content-type'), await first.json()]).toEqual([200, 'application/json', { made: 1 }])
  expect(await get().json()).toEqual({ made: 1 })
  const etag = first.headers.get('etag') ?? ''
  for (const tags of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const unchanged = get({ 'if-none-match': tags })
    expect([unchanged.status, unchanged.headers.get('etag'), await unchanged.text()]).toEqual([304, etag, ''])
  }
  expect(get({ 'if-none-match': '"other"' }).status).toBe(200)
  expect(made).toBe(1)
})
