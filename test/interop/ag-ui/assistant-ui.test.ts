import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { chromium, launch, type Browser, type Page } from '../../support/chromium.ts'
import { startServer } from '../../support/server.ts'
import { PAGE } from './assistant-page.ts'

describe('assistant-ui in Chromium', () => {
  let browser: Browser | undefined
  let pages: Server
  const errors: string[] = []

  beforeAll(async () => {
    if (chromium === undefined) return
    const { outputFiles } = await build({
      stdin: { contents: PAGE, resolveDir: fileURLToPath(new URL('..', import.meta.url)), loader: 'js' },
      bundle: true,
      format: 'esm',
      platform: 'browser',
      define: { 'process.env.NODE_ENV': '"production"' },
      write: false,
    })
    pages = createServer((request, response) => {
      const isScript = request.url === '/page.js'
      response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
      response.end(
        isScript
          ? outputFiles[0]?.text
          : '<!doctype html><title>chat</title><style>.text{white-space:pre-wrap}</style><div id="root"></div><script type="module" src="/page.js"></script>',
      )
    })
    await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve))
    browser = await launch(chromium)
  }, 60_000)

  afterAll(async () => {
    await browser?.close()
    pages?.close()
  })

  /** The page on a server of its own. */
  async function open() {
    const { url } = await startServer(demo())
    const page = (await browser?.newPage()) as Page
    page.on('pageerror', ({ message }) => errors.push(message))
    await page.goto(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/?url=${encodeURIComponent(`${url}/ag-ui`)}`)
    const say = async (text: string) => {
      await page.fill('.say', text)
      await page.click('.send')
    }
    const shows = async (text: string) => {
      await page.waitForFunction((wanted) => document.body.innerText.includes(wanted), text)
      return page.evaluate(() => document.body.innerText, undefined)
    }
    return { page, say, shows }
  }

  const inBrowser = (name: string, run: () => Promise<void>) =>
    test(
      name,
      async ({ skip }) => {
        if (chromium === undefined) return skip('chromium is not on the PATH')
        await run()
        expect(errors).toEqual([])
      },
      60_000,
    )

  inBrowser('an answer, and the next one, which knows of it', async () => {
    const { say, shows } = await open()
    await say('Hello')
    await shows('You said: Hello')
    await say('/history')
    expect(await shows('user: /history')).toContain('user: Hello\nassistant: You said: Hello\nuser: /history')
  })

  inBrowser('a tool of the page runs there, and the agent goes on with its result', async () => {
    const { page, say, shows } = await open()
    await say('/tool color {"to":"red"}')
    const shown = await shows('color answered:')
    expect(shown).toContain('It is red now')
    expect(await page.evaluate(() => (globalThis as unknown as { colors: string[] }).colors, undefined)).toEqual(['red'])
    await say('Hello')
    await shows('You said: Hello')
  })

  inBrowser('stop ends the answer, and the thread goes on', async () => {
    const { page, say, shows } = await open()
    await say('/count 1000 50')
    await shows('2')
    await page.click('.stop')
    await say('Hello')
    const shown = await shows('You said: Hello')
    expect(shown).not.toMatch(/\b500\b/)
  })

  inBrowser('an agent that fails is shown, and the thread goes on', async () => {
    const { page, say, shows } = await open()
    await say('/error internal')
    await shows('It failed')
    expect(await page.evaluate(() => (globalThis as unknown as { failure?: string }).failure, undefined)).toBe(
      'You asked me to fail with "internal"',
    )
    await say('Hello')
    await shows('You said: Hello')
  })

  inBrowser('an edited first message is a branch: what it replaced does not come back', async () => {
    const { page, say, shows } = await open()
    await say('my secret')
    await shows('You said: my secret')
    await say('second')
    await shows('You said: second')
    await page.click('.user .edit')
    await page.fill('.edited', '/history')
    await page.click('.save')
    expect(await shows('user: /history')).not.toContain('secret')
    await shows('2 of 2')
    await page.click('.previous')
    await shows('You said: second')
    // Who goes back to the first branch goes on with that. (assistant-ui itself loses the first message there.)
    await say('/history')
    expect(await shows('user: /history')).toContain('user: second\nassistant: You said: second\nuser: /history')
  })
})
