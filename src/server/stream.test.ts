import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { UampError } from '../protocol/errors.ts'
import { readableResponse } from './stream.ts'

const BASE = { status: 200, headers: {} }

test('an answer as a web stream: empty frames do not end it, and the last frame comes with the end', async () => {
  async function* frames() {
    yield 'one '
    yield ''
    yield new TextEncoder().encode('two ')
    yield { eachText: (each: (text: string) => void) => each('three') }
    return ' end'
  }
  expect(await readableResponse({ ...BASE, frames: frames() }, { heartbeatMs: 1_000 }).text()).toBe('one two three end')
})

test('silence is filled with heartbeats', async () => {
  async function* frames() {
    await sleep(60)
    yield 'late'
  }
  const text = await readableResponse({ ...BASE, frames: frames(), heartbeat: '.' }, { heartbeatMs: 10 }).text()
  expect(text).toMatch(/^\.+late$/)
})

test('a failure is told in the words of the protocol, and cuts the answer without any', async () => {
  async function* frames() {
    yield 'begun '
    throw new UampError('overloaded', 'no more')
  }
  const failure = (error: UampError) => `failed: ${error.code}`
  expect(await readableResponse({ ...BASE, frames: frames(), failure }, { heartbeatMs: 1_000 }).text()).toBe('begun failed: overloaded')
  await expect(readableResponse({ ...BASE, frames: frames() }, { heartbeatMs: 1_000 }).text()).rejects.toThrow('no more')
})

test('a reader who leaves ends the frames', async () => {
  let ended = false
  async function* frames() {
    try {
      for (;;) yield 'more '
    } finally {
      ended = true
    }
  }
  const reader = readableResponse({ ...BASE, frames: frames() }, { heartbeatMs: 1_000 }).body?.getReader()
  await reader?.read()
  await reader?.cancel()
  expect(ended).toBe(true)
})
