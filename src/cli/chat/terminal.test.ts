import { PassThrough } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { terminal } from './terminal.ts'

/** Keys go in by `press`; `screen` is what was written. */
function opened() {
  const stdin = new PassThrough() as PassThrough & NodeJS.ReadStream
  const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 80 }) as PassThrough & NodeJS.WriteStream
  let written = ''
  stdout.setEncoding('utf8').on('data', (text: string) => (written += text))
  const console = terminal({ stdin, stdout, paint: (_, text) => text })
  onTestFinished(() => console.close())
  // Streams hand on what is written in a later tick.
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  return {
    console,
    async press(keys: string) {
      stdin.write(keys)
      await settled()
    },
    screen: () => stripVTControlCharacters(written),
    clear: () => (written = ''),
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
  const { console, press, screen } = opened()
  console.busy()
  await press('next\r')
  expect(screen()).toBe('')
  console.rest()
  expect(await console.read()).toBe('next')
  await press('')
  expect(screen()).toBe('> next\n')
})

test('a question is answered with y, and by nothing that was typed before it was asked', async () => {
  const { console, press, screen } = opened()
  console.busy()
  await press('y')
  const never = new AbortController().signal
  const first = console.confirm('Delete it?', never)
  await press('\r')
  expect(await first).toBe(false)
  expect(screen()).toContain('Delete it? [y/n] ')
  const second = console.confirm('Delete \u0007it?', never)
  await press('y\r')
  expect(await second).toBe(true)
  expect(screen()).not.toContain('\u0007')
})

test('a question that is no longer asked is a no, and the next line is a message again', async () => {
  const { console, press } = opened()
  console.busy()
  const stop = new AbortController()
  const answer = console.confirm('Delete it?', stop.signal)
  stop.abort()
  expect(await answer).toBe(false)
  console.rest()
  const line = console.read()
  await press('hello\r')
  expect(await line).toBe('hello')
})

test('Ctrl-C is heard at the prompt, in mid-answer and at a question', async () => {
  const { console, press } = opened()
  let heard = 0
  console.onInterrupt(() => (heard += 1))
  void console.read()
  await press('\u0003')
  console.busy()
  await press('\u0003')
  void console.confirm('Delete it?', new AbortController().signal)
  await press('\u0003')
  expect(heard).toBe(3)
})
