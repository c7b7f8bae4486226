import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { filesBelow } from '../../scripts/build.js'
import { writeSite } from '../../scripts/docs/site.js'
import { chromium, launch, type Browser } from '../support/chromium.ts'
import { ROOT } from './child.ts'

describe('the documentation as a site', () => {
  // Below folders with unusual names, as it must work under any prefix.
  const folder = join(mkdtempSync(join(tmpdir(), 'uamp-site-')), 'any prefix', 'docs')
  let browser: Browser | undefined
  const pages = (): string[] => filesBelow(folder).filter((file) => file.endsWith('.html'))

  beforeAll(async () => {
    await writeSite(ROOT, folder)
    if (chromium !== undefined) browser = await launch(chromium)
  })
  afterAll(async () => {
    await browser?.close()
    rmSync(resolve(folder, '../..'), { recursive: true })
  })

  test('has every page of docs/', () => {
    const sources = filesBelow(join(ROOT, 'docs')).filter((file) => file.endsWith('.md'))
    const missing = sources
      .map((file) =>
        relative(join(ROOT, 'docs'), file)
          .replace(/README\.md$/, 'index.md')
          .replace(/md$/, 'html'),
      )
      .filter((name) => !existsSync(join(folder, name)))
    expect(missing).toEqual([])
    expect(sources.length).toBeGreaterThan(50)
  })

  test('every link leads to a page, and every anchor to a heading', () => {
    const ids = new Map(
      pages().map((file) => [file, new Set([...readFileSync(file, 'utf8').matchAll(/ id="([^"]*)"/g)].map(([, id]) => id))]),
    )
    let checked = 0
    const broken = pages().flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/ (?:href|src)="(?!https?:|data:)([^"]*)"/g)].flatMap(([, link = '']) => {
        checked += 1
        const [path = '', hash] = link.split('#')
        const target = path === '' ? file : resolve(dirname(file), decodeURIComponent(path))
        const found = existsSync(target) && !link.startsWith('/') && (hash === undefined || ids.get(target)?.has(hash))
        return found ? [] : [`${relative(folder, file)}: ${link}`]
      }),
    )
    expect(broken).toEqual([])
    expect(checked).toBeGreaterThan(1_000)
  })

  test('its pages load nothing from elsewhere', () => {
    const elsewhere = /<(?:link|script|img|iframe)[^>]*(?:href|src)="(?:https?:)?\/\/[^>]*>/g
    const loaded = pages().flatMap((file) => readFileSync(file, 'utf8').match(elsewhere) ?? [])
    expect(loaded).toEqual([])
    expect(readFileSync(join(folder, 'assets/site.css'), 'utf8')).not.toMatch(/@import|url\(/)
  })

  test('a heading is found before a page that only says the word often', () => {
    const file = filesBelow(join(folder, 'assets')).find((name) => readFileSync(name, 'utf8').startsWith('globalThis.searchIndex='))
    const text = readFileSync(file ?? '', 'utf8').replace('globalThis.searchIndex=', '')
    const { sections, words } = JSON.parse(text) as { sections: [url: string][]; words: Record<string, number[]> }
    const found = words['cancel'] ?? []
    const weightOf = (url: string) => found[found.findIndex((section, at) => at % 2 === 0 && sections[section]?.[0] === url) + 1] ?? 0
    expect(weightOf('agents.html#cancel')).toBeGreaterThan(weightOf('matrix.html'))
    expect(weightOf('matrix.html')).toBeGreaterThan(0)
  })

  test('from a folder: search finds a heading, and the choice of dark is kept', async ({ skip }) => {
    if (!browser) return skip('chromium is not on the PATH')
    const page = await browser.newPage()
    const asked: string[] = []
    const errors: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    page.on('pageerror', (error) => errors.push(String(error)))
    await page.goto(pathToFileURL(join(folder, 'decisions/2026-11-15-one-package.html')).href)
    await page.keyboard.press('/')
    await page.keyboard.type('behind a prox')
    await page.waitForSelector('#results a')
    expect(await page.textContent('#results li:first-child a')).toContain('Server › Behind a proxy')
    await page.keyboard.press('Enter')
    await page.waitForURL(/server\.html#behind-a-proxy$/)

    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    const before = await background()
    await page.click('.theme')
    expect(await background()).not.toBe(before)
    await page.click('nav a:first-of-type')
    expect(await background()).not.toBe(before)
    expect(asked.filter((url) => !url.startsWith('file:') && !url.startsWith('data:'))).toEqual([])
    expect(errors).toEqual([])
    await page.close()
  })

  test('on a narrow screen no page is wider than the screen', { timeout: 120_000 }, async ({ skip }) => {
    if (!browser) return skip('chromium is not on the PATH')
    const page = await browser.newPage({ viewport: { width: 390, height: 844 } })
    const wide: string[] = []
    // Decisions are plain text, and many.
    for (const file of pages().filter((name) => !/decisions.2/.test(name))) {
      await page.goto(pathToFileURL(file).href)
      if ((await page.evaluate(() => document.documentElement.scrollWidth)) > 390) wide.push(relative(folder, file))
    }
    expect(wide).toEqual([])
    await page.close()
  })
})
