import { PassThrough } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { widthOf } from '../render/width.ts'
import { terminal } from './terminal.ts'

/** Keys go in by `press`; `screen` is what was written. */
function opened(columns = 80) {
  const stdin = new PassThrough() as PassThrough & NodeJS.ReadStream
  const stdout = Object.assign(new PassThrough(), { isTTY: true, columns, rows: 24 }) as PassThrough & NodeJS.WriteStream
  let written = ''
  stdout.setEncoding('utf8').on('data', (text: string) => (written += text))
  const entries: string[] = ['first', 'second one']
  let now = 0
  const console = terminal({
    stdin,
    stdout,
    paint: (_, text) => text,
    past: { entries, add: (message) => void entries.push(message) },
    complete: (word, before) => (before === '' ? ['/help ', '/history '] : ['@a.txt']).filter((each) => each.startsWith(word)),
    now: () => now,
  })
  onTestFinished(() => console.close())
  // Streams hand on what is written in a later tick.
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  return {
    console,
    entries,
    later: () => (now += 1_000),
    async press(keys: string) {
      stdin.write(keys)
      await settled()
    },
    screen: () => stripVTControlCharacters(written).replaceAll('\r', ''),
    rows: () => stripVTControlCharacters(written).split(/[\n\r]/),
    clear: () => (written = ''),
    /** With the moves of the cursor. */
    moves: () => written,
    async resize(width: number) {
      stdout.columns = width
      stdout.emit('resize')
      await settled()
    },
  }
}

test('reads lines at a prompt, and ends with the input', async () => {
  const { console, press, screen } = opened()
  const line = console.read()
  await press('hello\r')
  expect(await line).toBe('hello')
  expect(screen()).toContain('> hello')
  const end = console.read()
  await press('\u0004')
  expect(await end).toBeUndefined()
  expect(await console.read()).toBeUndefined()
})

test('keys in mid-answer do not land in it; the prompt comes back with what was typed', async () => {
  const { console, press, screen, clear } = opened()
  console.busy()
  clear()
  await press('early')
  expect(screen()).toBe('')
  const line = console.read()
  expect(screen()).toBe('')
  console.rest()
  await press('')
  expect(screen()).toBe('> early')
  clear()
  console.busy()
  await press(' bird')
  expect(screen()).toBe('')
  console.rest()
  await press('\r')
  expect(await line).toBe('early bird')
})

test('a line that was entered in mid-answer is the next message, and is shown when it is taken', async () => {
  const { console, press, screen, clear } = opened()
  console.busy()
  clear()
  await press('next\r')
  expect(screen()).toBe('')
  console.rest()
  expect(await console.read()).toBe('next')
  await press('')
  expect(screen()).toMatch(/> next\n$/)
})

const QUESTION = {
  text: 'Delete \u0007it?',
  choices: [
    { key: 'y', label: 'Yes' },
    { key: 'n', label: 'No' },
    { key: 'a', label: 'Always' },
  ],
  first: 1,
}
const never = new AbortController().signal

test('a question is answered by a key or with the arrows, and by nothing that was typed before it was asked', async () => {
  const { console, press, screen, later } = opened()
  console.busy()
  await press('y')
  const first = console.choose(QUESTION, never)
  await press('y')
  later()
  await press('\r')
  expect(await first).toBe(1)
  expect(screen()).toContain('Delete it?\n  y  Yes\n❯ n  No\n  a  Always')
  expect(screen()).not.toContain('\u0007')
  for (const [keys, at] of [
    ['y', 0],
    ['A', 2],
    ['\u001B[A\r', 0],
    ['\u001B[B\r', 2],
    ['\u001B[B\u001B[B\r', 0],
    ['3', 2],
    ['x?\r', 1],
  ] as const) {
    const answer = console.choose(QUESTION, never)
    later()
    await press(keys)
    expect(await answer, JSON.stringify(keys)).toBe(at)
  }
})

test('a question that is no longer asked has no answer, and the next line is a message again', async () => {
  const { console, press } = opened()
  console.busy()
  const stop = new AbortController()
  const answer = console.choose(QUESTION, stop.signal)
  stop.abort()
  expect(await answer).toBeUndefined()
  console.rest()
  const line = console.read()
  await press('hello\r')
  expect(await line).toBe('hello')
})

test('a question that is taller than the screen is written once, and the choices that fit are shown', async () => {
  const { console, press, screen, later, clear } = opened(20)
  console.busy()
  const answer = console.choose({ ...QUESTION, text: 'Delete the whole thing? '.repeat(40) }, never)
  later()
  await press('')
  expect(screen().replaceAll('\n', '').split('Delete').length - 1).toBe(40)
  clear()
  await press('\u001B[A')
  expect(screen().trim()).toBe('❯ y  Yes\n  n  No\n  a  Always')
  await press('\r')
  expect(await answer).toBe(0)
  const choices = Array.from({ length: 40 }, (_, at) => ({ key: `k${at}`, label: `Label ${at}` }))
  const chosen = console.choose({ text: 'Which?', choices }, never)
  later()
  clear()
  await press('\u001B[A')
  expect(screen().trim().split('\n').length).toBeLessThan(24)
  expect(screen()).toContain('❯ k39  Label 39')
  await press('\r')
  expect(await chosen).toBe(39)
})

test('Ctrl-C closes a question that the user asked for', async () => {
  const { console, press } = opened()
  let heard = 0
  console.onInterrupt(() => (heard += 1))
  const answer = console.choose({ ...QUESTION, closable: true }, never)
  await press('\u0003')
  expect(await answer).toBeUndefined()
  expect(heard).toBe(0)
})

test('Ctrl-C is heard at an empty prompt, in mid-answer and at a question; else it empties the line', async () => {
  const { console, press } = opened()
  let heard = 0
  console.onInterrupt(() => (heard += 1))
  const line = console.read()
  await press('\u0003')
  expect(heard).toBe(1)
  await press('wrong\u0003right\r')
  expect(heard).toBe(1)
  expect(await line).toBe('right')
  console.busy()
  await press('\u0003')
  void console.choose(QUESTION, never)
  await press('\u0003')
  expect(heard).toBe(3)
})

test('a paste is one message, whatever is in it; Enter sends it', async () => {
  const { console, press } = opened()
  const line = console.read()
  const pasted = Array.from({ length: 30 }, (_, at) => `line ${at}`).join('\r')
  await press(`\u001B[200~${pasted}\u0003\t\u001B[201~`)
  await press(' end\r')
  expect(await line).toBe(`${pasted.replaceAll('\r', '\n')}\t end`)
})

/** One key at a time: a sequence of the terminal, or a character. */
const KEYS = new RegExp(String.raw`${'\u001B'}\[[\d;]*[A-Za-z~]|${'\u001B'}.|[^]`, 'gu')

test.each([
  ['Alt-Enter', 'one\u001B\rtwo\r', 'one\ntwo'],
  ['Ctrl-J', 'one\ntwo\r', 'one\ntwo'],
  ['Shift-Enter', 'one\u001B[13;2utwo\r', 'one\ntwo'],
  ['three quotes', '"""one\rtwo"""\r', 'one\ntwo'],
  ['three quotes on lines of their own', '"""\rone\rtwo\r"""\r', 'one\ntwo'],
  ['home, end and letters', 'b\u0001a\u0005c\r', 'abc'],
  ['words', 'one two\u001Bb\u001Bbx \r', 'x one two'],
  ['kill and yank', 'one two\u0017\u0019\u0019\r', 'one twotwo'],
  ['kill to the end', 'one two\u0001\u001Bf\u000B\r', 'one'],
  ['kill to the start', 'one two\u0015three\r', 'three'],
  ['transpose', 'ab\u0014\r', 'ba'],
  ['undo', 'one \u0017\u001F\r', 'one '],
  ['delete', 'abc\u001B[D\u001B[D\u0004\u001B[3~\r', 'a'],
  ['a character of several code points', 'a👩‍👩‍👧‍👦\u007Fb\r', 'ab'],
  ['up and down in a message', 'one\ntwo\u001B[Ax\u001B[By\r', 'onex\ntwoy'],
  ['an earlier message', '\u001B[A\u001B[A!\r', 'first!'],
  ['back to the new one', 'new\u001B[A\u001B[B!\r', 'new!'],
  ['a search', '\u0012irs\r\r', 'first'],
  ['a command that is completed', '/he\t\r', '/help '],
  ['a file that is completed', 'see @\t\r', 'see @a.txt'],
])('%s', async (_, keys, message) => {
  const { console, press } = opened()
  const line = console.read()
  for (const key of keys.match(KEYS) ?? []) await press(key)
  await press('\r')
  expect(await line).toBe(message)
})

test('a message is remembered for the arrow keys', async () => {
  const { console, press, entries } = opened()
  const line = console.read()
  await press('third\r')
  await line
  expect(entries).toEqual(['first', 'second one', 'third'])
})

test('no row is wider than a terminal of 20 columns', async () => {
  const { console, press, rows } = opened(20)
  void console.read()
  await press('a message that is longer than the terminal is wide 日本語の文章')
  for (const row of rows()) expect(widthOf(row)).toBeLessThan(20)
})

test('the prompt is there before a message is wanted, and what is entered there is the first one', async () => {
  const { console, press, screen } = opened()
  await press('soon\r')
  expect(screen()).toContain('> soon')
  expect(await console.read()).toBe('soon')
})

test('in a terminal that has become narrower, the rows that it has wrapped are erased, and no others', async () => {
  const { console, press, clear, resize, moves } = opened(40)
  void console.read()
  await press('typing something long enough to wrap over two lines')
  clear()
  await resize(20)
  expect(moves().split('> typing')[0]).toBe('\r\u001B[2A\u001B[K\n\u001B[J\u001B[1A')
  clear()
  await resize(60)
  expect(moves()).toContain('\r\u001B[3A\u001B[K\n\u001B[J\u001B[1A> typing something long enough to wrap over two lines\r')
})

test('a terminal that has no size is written to as well', async () => {
  const { console, press, moves } = opened(0)
  void console.read()
  await press('two\nlines')
  expect(moves()).not.toMatch(/Infinity|NaN/)
  expect(moves()).toContain('\r\u001B[1A\u001B[K')
})

test('a prompt of one row is erased without a clearing of the screen, which tmux would keep in its history', async () => {
  const { console, press, moves } = opened()
  console.busy()
  await press('')
  expect(moves()).toContain('> ')
  expect(moves()).not.toContain('\u001B[J')
})
