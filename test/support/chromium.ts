import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'

/** As much of playwright-core as tests use; it has a package.json of its own. */
export interface Page {
  goto(url: string): Promise<unknown>
  evaluate<T>(run: () => T | Promise<T>): Promise<T>
  evaluate<T, A>(run: (argument: A) => T | Promise<T>, argument: A): Promise<T>
  on(event: 'pageerror', listener: (error: Error) => void): void
  on(event: 'request', listener: (request: { url(): string }) => void): void
  fill(selector: string, text: string): Promise<void>
  click(selector: string): Promise<void>
  readonly keyboard: { press(key: string): Promise<void>; type(text: string): Promise<void> }
  textContent(selector: string): Promise<string | null>
  waitForSelector(selector: string): Promise<unknown>
  waitForURL(url: RegExp): Promise<void>
  waitForFunction<A>(run: (argument: A) => unknown, argument: A): Promise<unknown>
  screenshot(options: { path: string }): Promise<unknown>
  close(): Promise<void>
}
export interface Browser {
  newPage(options?: { viewport: { width: number; height: number } }): Promise<Page>
  close(): Promise<void>
}
interface Playwright {
  readonly chromium: { launch(options: { executablePath: string; args: string[] }): Promise<Browser> }
}

/** Undefined if there is none on the PATH. */
export const chromium = findChromium()

export async function launch(executablePath: string, more: readonly string[] = []): Promise<Browser> {
  const { chromium: driver } = createRequire(new URL('../interop/package.json', import.meta.url))('playwright-core') as Playwright
  return driver.launch({ executablePath, args: ['--no-sandbox', ...more] })
}

function findChromium(): string | undefined {
  try {
    return execFileSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).trim()
  } catch {
    return undefined
  }
}
