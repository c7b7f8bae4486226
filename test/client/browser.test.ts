import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { connect } from '../../src/client/node.ts'
import { serve } from '../../src/serve/index.ts'
import { chromium, launch, type Browser, type Page } from '../support/chromium.ts'
import { startProxy } from './proxy.ts'

type Uamp = typeof import('../../src/client/index.ts')
const PAGE = `<!doctype html><title>client</title><script type="module">import * as uamp from '/client.js'; globalThis.uamp = uamp</script>`

describe('in Chromium', () => {
  let server: Awaited<ReturnType<typeof serve>>
  let pages: Server
  let browser: Browser | undefined
  let page: Page
  const errors: Error[] = []

  beforeAll(async () => {
    if (chromium === undefined) return
    const bundle = await build({
      entryPoints: ['src/client/index.ts'],
      bundle: true,
      minify: true,
      format: 'esm',
      platform: 'neutral',
      write: false,
    })
    server = await serve(demo(), { port: 0, data: 'memory', tokens: { alice: 'secret-0123456789abcdef' } })
    pages = createServer((request, response) => {
      const script = request.url === '/client.js'
      response.setHeader('content-type', script ? 'text/javascript' : 'text/html')
      response.end(script ? bundle.outputFiles[0]?.text : PAGE)
    })
    await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve))
    browser = await launch(chromium)
    page = await browser.newPage()
    page.on('pageerror', (error) => errors.push(error))
    // A page of another origin than the server's.
    await page.goto(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/`)
  })

  afterAll(async () => {
    if (chromium === undefined) return
    await browser?.close()
    pages.close()
    await server.close({ graceMs: 0 })
  })

  test.for(['websocket', 'sse'] as const)('a streamed answer and a tool over %s', async (transport, { skip }) => {
    if (chromium === undefined) return skip('chromium is not on the PATH')
    const result = await page.evaluate(
      async ({ url, transport }) => {
        const { connect } = (globalThis as unknown as { uamp: Uamp }).uamp
        const client = connect(url, { transport, token: 'secret-0123456789abcdef' })
        const session = await client.session({ tools: { where: { run: () => location.origin } } })
        const deltas: string[] = []
        for await (const event of session.ask('/count 50')) {
          if (event.type === 'response.delta' && event.delta.type === 'text') deltas.push(event.delta.text.trim())
        }
        const tool = await session.say('/tool where {}')
        await session.end()
        client.close()
        return { deltas, tool, origin: location.origin }
      },
      { url: server.url, transport },
    )
    expect(result.deltas).toEqual(Array.from({ length: 50 }, (_, n) => String(n + 1)))
    expect(result.tool).toContain(result.origin)
    expect(errors).toEqual([])
  })

  test.for(['websocket', 'sse'] as const)('over %s a stream that is cut arrives whole', async (transport, { skip }) => {
    if (chromium === undefined) return skip('chromium is not on the PATH')
    const proxy = await startProxy(server.port)
    const watcher = connect(server.url, { token: 'secret-0123456789abcdef' })
    const url = `${proxy.url}/`
    const id = await page.evaluate(
      async ({ url, transport }) => {
        const scope = globalThis as unknown as { uamp: Uamp; got: Promise<number[]> }
        const client = scope.uamp.connect(url, { transport, token: 'secret-0123456789abcdef', reconnect: { minMs: 5, maxMs: 50 } })
        const session = await client.session()
        scope.got = (async () => {
          const got: number[] = []
          for await (const event of session.ask('/count 600 1')) {
            if (event.type === 'response.delta' && event.delta.type === 'text') got.push(Number(event.delta.text))
          }
          client.close()
          return got
        })()
        return session.id
      },
      { url, transport },
    )
    const watched = await watcher.session({ resume: { session_id: id, after: 0 } })
    for await (const event of watched) {
      if (event.type === 'response.delta' && (event.seq ?? 0) % 150 === 0) proxy.cut()
      if (event.type === 'response.done') break
    }
    const got = await page.evaluate(async () => (globalThis as unknown as { got: Promise<number[]> }).got, undefined)
    expect(got).toEqual(Array.from({ length: 600 }, (_, n) => n + 1))
    expect(proxy.accepted).toBeGreaterThan(1)
    watcher.close()
    await proxy.close()
  })

  test('SSE where no WebSocket can be opened, and a reason where the token is wrong', async ({ skip }) => {
    if (chromium === undefined) return skip('chromium is not on the PATH')
    const proxy = await startProxy(server.port)
    proxy.door = 'no-upgrade'
    const result = await page.evaluate(async (url) => {
      const { connect } = (globalThis as unknown as { uamp: Uamp }).uamp
      const client = connect(url, { token: 'secret-0123456789abcdef' })
      const answer = await (await client.session()).say('hello')
      client.close()
      const wrong = connect(url, { token: 'wrong' })
      const code = await wrong.session().then(
        () => 'let in',
        (error: { code: string }) => error.code,
      )
      return { answer, code }
    }, proxy.url)
    expect(result).toEqual({ answer: 'You said: hello', code: 'unauthorized' })
    await proxy.close()
  })
})
