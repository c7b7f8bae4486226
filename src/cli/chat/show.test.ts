import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import type { ServerEvent } from '../../client/index.ts'
import { Media, picturesIn } from './media.ts'
import { Page } from './page.ts'
import { show, usageText } from './show.ts'

/** A folder for saved files, for as long as the test runs. */
function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'uamp-show-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

function opened(isTTY: boolean) {
  const stream = (): PassThrough & NodeJS.WriteStream =>
    Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY, columns: 400 }) as PassThrough & NodeJS.WriteStream
  const stdout = stream()
  const stderr = stream()
  const page = new Page({ stdout, stderr, paint: () => (format, text) => `<${String(format)}>${text}</>` })
  const events = [
    { type: 'thinking', content: 'let me ' },
    { type: 'thinking', content: 'see' },
    { type: 'response.delta', delta: { type: 'text', text: 'One \u001B[2Jmo' } },
    { type: 'response.delta', delta: { type: 'text', text: 'ment.' } },
    { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id: 'c', name: 'add', arguments: '{}' } } },
    { type: 'response.delta', delta: { type: 'tool_result', tool_result: { call_id: 'c', result: '"no"', is_error: true } } },
    { type: 'progress', target: 'response', step: 1, total_steps: 2 },
    { type: 'response.delta', delta: { type: 'text', text: 'So: ' } },
    { type: 'response.delta', delta: { type: 'image', image: 'AA==', content_id: 'i1' } },
    { type: 'response.delta', delta: { type: 'text', text: 'Done' } },
    { type: 'response.error', error: { code: 'internal', message: 'o\u001B]0;pwned\u0007h' } },
    { type: 'response.done', response: { output: [] } },
  ]
  const media = new Media('none', folder())
  for (const event of events) show(event as unknown as ServerEvent, { page, media })
  return { stdout: stdout.read() as string, stderr: stderr.read() as string | null }
}

test('on a terminal everything has its place, and an agent cannot send escape sequences', () => {
  const { stdout, stderr } = opened(true)
  expect(stdout.split('\n')).toEqual([
    '<dim>let</> <dim>me</> <dim>see</>',
    'One moment.',
    '<cyan>→</> <cyan>add</> <cyan>{}</>',
    '<red>←</> <red>"no"</>',
    '<dim>·</> <dim>step</> <dim>1</> <dim>of</> <dim>2</>',
    'So:',
    expect.stringMatching(/^\[image saved as \S+1-image\.bin\]$/),
    'Done',
    '<red>internal:</> <red>oh</>',
    '<dim>(no</> <dim>answer)</>',
    '',
  ])
  expect(stderr).toBeNull()
})

test('in a pipe the answer is as it came, and all else goes beside it', () => {
  const { stdout, stderr } = opened(false)
  expect(stdout.replace(/saved as \S+1-image\.bin/, '(saved)')).toBe('One \u001B[2Jmoment.So: \n[image i1 (saved)]\nDone\n')
  expect(stderr).toBe(
    '<dim>let me </><dim>see</>\n<cyan>→ add {}</>\n<red>← "no"</>\n<dim>· step 1 of 2</>\n<red>internal: oh</>\n<dim>(no answer)</>\n',
  )
})

test('an agent that says everything with its end is shown, and one that said it before is not shown twice', () => {
  const stdout = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY: false }) as PassThrough & NodeJS.WriteStream
  const page = new Page({ stdout, stderr: stdout, paint: () => (_, text) => text })
  const done = { type: 'response.done', response: { output: [{ type: 'text', text: 'All at once' }] } }
  const said = { type: 'response.delta', delta: { type: 'text', text: 'All at once' } }
  const media = new Media('none', folder())
  for (const event of [{ type: 'response.created' }, done, { type: 'response.created' }, said, done]) {
    show(event as unknown as ServerEvent, { page, media })
  }
  expect(stdout.read()).toBe('All at once\nAll at once\n')
})

test.each([true, false])('the arguments of a call that come in pieces are one line (on a terminal: %s)', (isTTY) => {
  const stream = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY, columns: 80 }) as unknown as PassThrough & NodeJS.WriteStream
  const page = new Page({ stdout: stream, stderr: stream, paint: () => (_, text) => text })
  const calls = [
    { id: 'c', name: 'add', arguments: '' },
    { id: 'c', name: 'add', arguments: '{"a"' },
    { id: 'c', name: 'add', arguments: ':1}' },
    { id: 'd', name: 'clock', arguments: '' },
  ]
  const media = new Media('none', folder())
  for (const tool_call of calls)
    show({ type: 'response.delta', delta: { type: 'tool_call', tool_call } } as unknown as ServerEvent, { page, media })
  page.end()
  expect(stream.read()).toBe('→ add {"a":1}\n→ clock\n')
})

test('a note in the middle of an answer breaks the line, and nothing else', () => {
  const stream = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY: true, columns: 80 }) as unknown as PassThrough &
    NodeJS.WriteStream
  const page = new Page({ stdout: stream, stderr: stream, paint: () => (_, text) => text })
  const shown = (...pieces: readonly string[]): unknown => {
    for (const [index, piece] of pieces.entries()) {
      if (index > 0) page.note('(lost)')
      page.answer(piece)
    }
    page.end()
    return stream.read()
  }
  expect(shown('1 2', ' 3 4')).toBe('1 2\n(lost)\n3 4\n')
  expect(shown('1 2', '\n3 4')).toBe('1 2\n(lost)\n3 4\n')
  expect(shown('1 2', '', '\n\n3 4')).toBe('1 2\n(lost)\n(lost)\n\n3 4\n')
  expect(shown('```\n# a\n', '# b\n```\n**c**')).toBe('```\n# a\n(lost)\n# b\n```\nc\n')
  expect(shown('```\n# a', ' b\n```\n**c**')).toBe('```\n# a\n(lost)\nb\n```\nc\n')
  expect(shown('```\na\n```', '\n**c**')).toBe('```\na\n```\n(lost)\nc\n')
  expect(shown('```\na')).toBe('```\na\n')
  expect(shown('**c**')).toBe('c\n')
})

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg=='

test('pictures go to terminals that show them, in their own words', () => {
  const item = { type: 'image', image: PNG, format: 'png', content_id: 'i' } as const
  const place = folder()
  expect(new Media('kitty', place).show(item)).toEqual({ line: '[image png i]', picture: `\u001B_Ga=T,f=100,m=0;${PNG}\u001B\\` })
  expect(new Media('iterm2', place).show(item).picture).toBe(`\u001B]1337;File=inline=1;size=70;preserveAspectRatio=1:${PNG}\u0007`)
  const large = Buffer.concat([Buffer.from(PNG, 'base64'), Buffer.alloc(6000)]).toString('base64')
  const pieces =
    new Media('kitty', place)
      .show({ ...item, image: large })
      .picture?.split('\u001B\\')
      .slice(0, -1) ?? []
  expect(pieces.map((piece) => piece.slice(0, piece.indexOf(';')))).toEqual(['\u001B_Ga=T,f=100,m=1', '\u001B_Gm=0'])
})

test('what cannot be shown is saved under a name that stays in its folder, or named by its address', () => {
  const place = folder()
  const media = new Media('none', place)
  const file = { type: 'file', file: btoa('data'), filename: '../../.profile', mime_type: 'text/plain' } as const
  const [, path = ''] = /saved as (\S+)\]$/.exec(media.show(file).line) ?? []
  expect(path.startsWith(place)).toBe(true)
  expect(path.slice(place.length)).toMatch(/^\/uamp-chat-\w+\/1-[\w.]*profile$/)
  expect(readFileSync(path, 'utf8')).toBe('data')
  expect(media.show({ type: 'image', image: { url: 'https://x.example/a.png' } })).toEqual({ line: '[image https://x.example/a.png]' })
  expect(media.show({ type: 'image', image: 'not base64!' })).toEqual({ line: '[image]' })
  expect(media.show({ type: 'image', image: '', content_id: 'i' })).toEqual({ line: '[image i]' })
})

test.each([
  [{ TERM: 'xterm-kitty' }, 'kitty'],
  [{ KITTY_WINDOW_ID: '1', TERM: 'xterm-256color' }, 'kitty'],
  [{ TERM_PROGRAM: 'iTerm.app' }, 'iterm2'],
  [{ TERM_PROGRAM: 'WezTerm' }, 'iterm2'],
  [{ TERM: 'xterm-256color' }, 'none'],
  [{ TERM: 'tmux-256color', KITTY_WINDOW_ID: '1', TMUX: 'x' }, 'none'],
])('the terminal of %o shows pictures by: %s', (env, pictures) => {
  expect(picturesIn(env)).toBe(pictures)
})

test.each([
  [{ input_tokens: 1200, output_tokens: 34 }, '1,200 in · 34 out'],
  [
    { input_uncached: 20, cache_read: 80, output_tokens: 5, reasoning: 3, cost: { total_cost: 0.00213 } },
    '100 in (80 cached) · 5 out (3 thought) · $0.0021',
  ],
  [{ input_tokens: 1, output_tokens: 1, cost: { total_cost: 2.5, currency: 'EUR' } }, '1 in · 1 out · 2.50 EUR'],
])('usage %o is shown as %s', (usage, text) => {
  expect(usageText(usage)).toBe(text)
})
