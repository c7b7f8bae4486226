import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { HttpAgent } from 'ag-ui-059'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { sseParser } from '../../../src/wire/sse-parse.ts'
import { startServer } from '../../support/server.ts'
import type { Heard } from './clients.ts'

const BASE = '/api/copilotkit'

beforeAll(() => {
  vi.stubEnv('COPILOTKIT_TELEMETRY_DISABLED', 'true')
  vi.stubEnv('DO_NOT_TRACK', '1')
})

/** A CopilotKit runtime in this process, in front of our server. */
async function copilotKit(url: string) {
  const { CopilotRuntime, createCopilotEndpoint } = await import('@copilotkit/runtime/v2')
  const agent = new HttpAgent({ url: `${url}/ag-ui` })
  const runtime = new CopilotRuntime({ agents: { default: agent as never } })
  const app = createCopilotEndpoint({ runtime, basePath: BASE })
  return async (method: 'run' | 'connect', body: object, headers: Record<string, string> = {}) => {
    const input = { state: {}, tools: [], context: [], forwardedProps: {}, messages: [], ...body }
    const response = await app.request(`${BASE}/agent/default/${method}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(input),
    })
    expect(response.status).toBe(200)
    return sseParser()(await response.text()).map(({ data }) => JSON.parse(data) as Heard)
  }
}

const user = (id: string, content: string) => ({ id, role: 'user', content })
const said = (events: readonly Heard[]) => events.map(({ delta }) => (typeof delta === 'string' ? delta : '')).join('')

test('a CopilotKit runtime runs every kind of answer', async () => {
  const { url } = await startServer(demo())
  const call = await copilotKit(url)
  const shown: [said: string, end: string, shows: string][] = [
    ['Hello', 'RUN_FINISHED', 'TEXT_MESSAGE_CONTENT'],
    ['/think cats', 'RUN_FINISHED', 'REASONING_MESSAGE_CONTENT'],
    ['/tool add {"a":1,"b":2}', 'RUN_FINISHED', 'TOOL_CALL_RESULT'],
    ['/state', 'RUN_FINISHED', 'STATE_DELTA'],
    ['/progress 2', 'RUN_FINISHED', 'ACTIVITY_SNAPSHOT'],
    ['/image', 'RUN_FINISHED', 'ACTIVITY_SNAPSHOT'],
    ['/error teapot', 'RUN_ERROR', 'RUN_ERROR'],
  ]
  for (const [text, end, shows] of shown) {
    const id = crypto.randomUUID()
    const events = await call('run', { threadId: id, runId: id, messages: [user('u1', text)] })
    expect(events[0]?.type, text).toBe('RUN_STARTED')
    expect(events.at(-1)?.type, text).toBe(end)
    expect(
      events.map(({ type }) => type),
      text,
    ).toContain(shows)
  }
})

describe('media, as the guide shows it', () => {
  const page = readFileSync(new URL('../../../docs/ag-ui.md', import.meta.url), 'utf8')
  const source = /^```tsx\n(\/\/ media\.tsx\n[^]*?)\n```$/m.exec(page)?.[1] ?? ''
  const folder = mkdtempSync(fileURLToPath(new URL('../.media-', import.meta.url)))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test('compiles', { timeout: 120_000 }, () => {
    writeFileSync(join(folder, 'media.tsx'), source)
    const options =
      '--ignoreConfig --noEmit --strict --jsx react-jsx --target es2023 --module nodenext --lib es2023,dom --skipLibCheck --types react'
    const tsc = fileURLToPath(new URL('../../../node_modules/typescript/bin/tsc', import.meta.url))
    const { stdout } = spawnSync(process.execPath, [tsc, ...options.split(' '), 'media.tsx'], { cwd: folder, encoding: 'utf8' })
    expect(stdout).toBe('')
  })

  test.each([
    ['/image', /^<img src="data:image\/png;base64,iVBOR[^"]*" alt="One orange pixel"\/>$/],
    ['/file', /^<a href="data:text\/csv;base64,bmFtZSx2YWx1ZQpkZW1vLDEK" download="demo.csv">demo.csv<\/a>$/],
    ['/video', /^<video src="data:video\/mp4;base64,[\w+/=]+" controls=""><\/video>$/],
  ])('%s', { timeout: 60_000 }, async (said, html) => {
    const { renderMedia } = await built()
    const { url } = await startServer(demo())
    const call = await copilotKit(url)
    const events = await call('run', { threadId: crypto.randomUUID(), runId: 'r', messages: [user('u1', said)] })
    const shown = events.filter(({ type, activityType }) => type === 'ACTIVITY_SNAPSHOT' && activityType === 'uamp.content')
    expect(shown.map(({ content }) => renderMedia(content))).toEqual([expect.stringMatching(html)])
  })

  test('an agent cannot have a script run by it, nor show what it does not have', async () => {
    const { renderMedia } = await built()
    const script = { url: 'javascript:alert(1)' }
    expect(renderMedia({ item: { type: 'file', file: script, filename: 'a' } })).toBe('')
    expect(renderMedia({ item: { type: 'image' } })).toBe('')
    const elsewhere = { type: 'image', image: { url: 'https://example.com/a.png' } }
    expect(renderMedia({ item: elsewhere })).toContain('<img src="https://example.com/a.png" alt=""/>')
  })

  /** The renderer of the guide, and React to run it as a page does. */
  async function built(): Promise<{ renderMedia: (content: unknown) => string }> {
    const main = `import { createElement } from 'react'
      import { renderToStaticMarkup } from 'react-dom/server'
      import { uampContent } from './media.tsx'
      export const renderMedia = (content) => renderToStaticMarkup(createElement(uampContent.render, { content: uampContent.content.parse(content) }))`
    writeFileSync(join(folder, 'media.tsx'), source)
    const outfile = join(folder, 'main.cjs')
    const stdin = { contents: main, resolveDir: folder, loader: 'js' } as const
    await build({ stdin, bundle: true, platform: 'node', format: 'cjs', jsx: 'automatic', outfile, logLevel: 'silent' })
    return createRequire(import.meta.url)(outfile) as Awaited<ReturnType<typeof built>>
  }
})

test('a CopilotKit page goes on with a tool of its own, resumes an interrupt, and finds its thread again', async () => {
  const { url } = await startServer(demo())
  const call = await copilotKit(url)
  const tools = [{ name: 'color', description: 'Changes the colour', parameters: { type: 'object', properties: {} } }]
  const threadId = crypto.randomUUID()
  const first = user('u1', '/tool color {"to":"red"}')
  const events = await call('run', { threadId, runId: 'r1', messages: [first], tools })
  const { toolCallId, parentMessageId: id } = events.find(({ type }) => type === 'TOOL_CALL_START') as Heard
  const toolCalls = [{ id: toolCallId, type: 'function', function: { name: 'color', arguments: '{"to":"red"}' } }]
  const messages = [first, { id, role: 'assistant', toolCalls }, { id: 't1', role: 'tool', toolCallId, content: 'red' }]
  expect(said(await call('run', { threadId, runId: 'r2', messages, tools }))).toBe('color answered: red')

  const other = crypto.randomUUID()
  const asked = await call('run', { threadId: other, runId: 'r3', messages: [user('u2', '/approve it')] })
  const { interrupts } = asked.at(-1)?.['outcome'] as { interrupts: { id: string }[] }
  const resume = [{ interruptId: interrupts[0]?.id, status: 'resolved', payload: { approved: true } }]
  expect(said(await call('run', { threadId: other, runId: 'r4', messages: [user('u2', '/approve it')], resume }))).toBe('Approved: it')

  const again = await call('connect', { threadId, runId: 'r5' })
  expect(said(again.filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT'))).toBe('color answered: red')
})

test('a CopilotKit runtime hands on who calls', async () => {
  const { url } = await startServer(demo(), { tokens: { page: 'secret-0123456789abcdef' } })
  const call = await copilotKit(url)
  const events = await call(
    'run',
    { threadId: 't', runId: 'r', messages: [user('u1', 'Hello')] },
    { authorization: 'Bearer secret-0123456789abcdef' },
  )
  expect(said(events)).toBe('You said: Hello')
})
