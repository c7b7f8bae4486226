/** The way between `uamp connect` and `uamp serve` breaks, or the connecting process stands still, in the middle of answers. */
import { setTimeout as sleep } from 'node:timers/promises'
import { OpenAI } from 'openai'
import { expect, vi } from 'vitest'
import { textOf } from '../../support/talk.ts'
import { verifies } from '../../support/verifies.ts'
import type { Wire } from '../../support/wire.ts'
import { asked, CALLER, connecting, counted, network, startHost } from './places.ts'

// A stop of 10 s and two processes to start, of which a busy machine makes more than the usual time.
vi.setConfig({ testTimeout: 90_000 })

/** Streams Completions with the official client, as they come. */
function streamed(url: string, content: string) {
  const openai = new OpenAI({ baseURL: `${url}/agents/counter/v1`, apiKey: CALLER, maxRetries: 0 })
  const heard: string[] = []
  const waiting: { readonly piece: string; readonly resolve: () => void }[] = []
  const ends: string[] = []
  const over = (async () => {
    const body = { model: 'counter', messages: [{ role: 'user' as const, content }], stream: true as const }
    for await (const { choices } of await openai.chat.completions.create(body)) {
      const { delta, finish_reason: end } = choices[0] ?? { delta: {}, finish_reason: null }
      if (delta.content) heard.push(delta.content)
      if (end) ends.push(end)
      for (const { piece, resolve } of waiting) if (piece === delta.content) resolve()
    }
  })()
  // Awaited at the end of a trial, and not by one that fails before.
  over.catch(() => undefined)
  return {
    heard,
    ends,
    over,
    /** Resolves when this piece comes. */
    until: (piece: string) =>
      heard.includes(piece) ? Promise.resolve() : new Promise<void>((resolve) => waiting.push({ piece, resolve })),
  }
}

/** Every number of the session exactly once, in order. */
function expectInOrder({ heard }: Wire): void {
  const numbers = heard.flatMap(({ seq }) => (typeof seq === 'number' ? [seq] : []))
  expect(numbers).toEqual(numbers.map((_, index) => (numbers[0] ?? 0) + index))
  expect(heard.filter(({ type }) => type === 'response.created')).toHaveLength(1)
  expect(heard.filter(({ type }) => type === 'response.done')).toHaveLength(1)
  expect(heard.filter(({ type }) => /error|cancelled/.test(type))).toEqual([])
}

verifies(
  ['connect.resume', 'connect.reconnect'],
  'a socket that is cut in mid-answer, with what was on its way: nothing is lost',
  async () => {
    const host = await startHost()
    const net = await network(host)
    const cli = await connecting(net.url)
    // Beyond each of these, what the agent says is lost on its way, until the socket is cut at the next.
    const stops = [1, 60, 1000, 1500, 5000, 6000]
    const question = `count 8000 ${stops.join(' ')}`
    const wire = await asked(host.url, question)
    for (const [index, stop] of stops.entries()) {
      await cli.at(stop)
      if (index % 2 === 0) {
        net.upstream = 'lose'
      } else {
        net.cut()
        net.upstream = 'pass'
        // What was lost has come by another connection.
        await wire.next(({ delta }) => delta?.text === ` ${stop}`)
      }
      cli.pass(stop)
    }
    await wire.next('response.done')
    expect(textOf(wire.heard)).toBe(counted(8000))
    expectInOrder(wire)
    expect(cli.runs).toEqual([question])
    expect(net.accepted).toBe(4)
  },
)

verifies('connect.resume', 'a socket that is cut again and again at full speed: two clients get each number once', async () => {
  const host = await startHost()
  const net = await network(host)
  const cli = await connecting(net.url)
  const wire = await asked(host.url, 'count 30000')
  const completion = streamed(host.url, 'count 30001')
  for (const number of [500, 3000, 6000, 9000]) {
    await completion.until(` ${number}`)
    const back = net.nextConnection()
    net.cut()
    await back
  }
  await Promise.all([wire.next('response.done'), completion.over])
  expect(textOf(wire.heard)).toBe(counted(30_000))
  expectInOrder(wire)
  expect(completion.heard.join('')).toBe(counted(30_001))
  expect(completion.ends).toEqual(['stop'])
  expect(cli.runs.toSorted()).toEqual(['count 30000', 'count 30001'])
  expect(net.accepted).toBe(5)
})

verifies('connect.resume', 'a process that is stopped for 10 s in mid-answer, and goes on: nothing is lost', async () => {
  const host = await startHost()
  const cli = await connecting(host.url)
  const wire = await asked(host.url, 'count 12000 6000')
  const completion = streamed(host.url, 'count 12001 6000')
  await completion.until(' 3000')
  cli.signal('SIGSTOP')
  // A stop of the process, as of a laptop that sleeps: the time is the trial.
  await sleep(10_000)
  expect(completion.heard.length).toBeLessThanOrEqual(6000)
  cli.signal('SIGCONT')
  cli.pass(6000)
  await Promise.all([wire.next('response.done'), completion.over])
  expect(textOf(wire.heard)).toBe(counted(12_000))
  expectInOrder(wire)
  expect(completion.heard.join('')).toBe(counted(12_001))
  expect(completion.ends).toEqual(['stop'])
  expect(cli.runs.toSorted()).toEqual(['count 12000 6000', 'count 12001 6000'])
})

verifies('connect.resume', 'a process that is stopped while its socket is cut comes back to its answer', async () => {
  const host = await startHost()
  const net = await network(host)
  const cli = await connecting(net.url)
  const wire = await asked(host.url, 'count 4000 2000')
  await cli.at(2000)
  cli.signal('SIGSTOP')
  cli.pass(2000)
  net.cut()
  // The host knows: others are told at once.
  await expect.poll(() => isOnline(host.url)).toBe(false)
  cli.signal('SIGCONT')
  await wire.next('response.done')
  expect(textOf(wire.heard)).toBe(counted(4000))
  expectInOrder(wire)
  expect(cli.runs).toEqual(['count 4000 2000'])
})

async function isOnline(url: string): Promise<boolean | undefined> {
  const { agents } = (await (await fetch(`${url}/agents`)).json()) as { agents: { name: string; online?: boolean }[] }
  return agents.find(({ name }) => name === 'counter')?.online
}
