import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { demo } from '../src/agents/demo/index.ts'
import { counter, mirror } from './support/agents.ts'
import { startChild } from './support/child.ts'
import { startServer } from './support/server.ts'
import { isEnd, mirrored, say, textOf } from './support/talk.ts'
import { verifies } from './support/verifies.ts'
import { overSse, overWebSocket, type Connect, type Heard } from './support/wire.ts'

const upTo = (last: number): string => Array.from({ length: last }, (_, n) => n + 1).join(' ')

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'uamp-test-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** Follows a session to the end of its response, connecting anew whenever the connection is cut. */
async function persistent(
  url: string,
  connect: Connect,
  { session, cuts, away }: { session: string; cuts: number; away: (cut: number) => Promise<void> },
) {
  const events: Heard[] = []
  for (let cut = 0; ; cut++) {
    const wire = await connect(url)
    await wire.follow(session, (events.at(-1)?.['seq'] as number | undefined) ?? 0)
    const many = 200 + Math.floor(Math.random() * 1500)
    const enough = cut < cuts ? (event: Heard) => isEnd(event) || wire.heard.indexOf(event) >= many : isEnd
    const last = await wire.next(enough)
    const until = wire.heard.indexOf(last)
    wire.cut()
    for (const event of wire.heard.slice(0, until + 1)) if (event['seq'] !== undefined) events.push(event)
    if (isEnd(last)) return events
    await away(cut)
  }
}

test('two readers on different bindings are cut again and again, and miss and repeat nothing', { timeout: 120_000 }, async () => {
  const { url, gateway } = await startServer(counter, { data: folder() })
  const wire = await overWebSocket(url)
  const session = await wire.open()
  const N = 20_000
  await wire.send({ type: 'input.text', text: String(N) })
  await wire.send({ type: 'response.create' })
  wire.cut()
  const owned = await gateway.attach(session, { tenant: 'default', id: 'anonymous', scopes: ['*'] })
  const head = (): number => owned?.lastSeq ?? 0
  // Once it stays away for longer than the ring and 5,000 events.
  const away = async (cut: number): Promise<void> => {
    const until = head() + (cut === 2 ? 5_500 : Math.random() * 50)
    while (head() < until && head() < N) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  const [one, two] = await Promise.all([
    persistent(url, overWebSocket, { session, cuts: 10, away }),
    persistent(url, overSse, { session, cuts: 10, away }),
  ])
  expect(textOf(one)).toBe(upTo(N))
  expect(textOf(two)).toBe(upTo(N))
  const numbers = one.map((event) => event['seq'] as number)
  expect(numbers).toEqual(numbers.map((_, index) => index + 1))
})

test('a position that is not to be had is told, never passed over', async () => {
  const { url } = await startServer(demo())
  const wire = await overWebSocket(url)
  const session = await wire.open()
  const again = await overWebSocket(url)
  await again.follow(session, 999_999)
  expect(again.heard.find(({ type }) => type === 'session.created')?.['extensions'].uamp.resume).toMatchObject({
    recovered: false,
    after: 999_999,
  })
})

test('killed in mid-answer: what was acknowledged is there, the response is closed as interrupted', { timeout: 60_000 }, async () => {
  const data = folder()
  const first = await startChild(data)
  const wire = await overWebSocket(first.url)
  const session = await wire.open()
  await say(wire, 'remember the word swordfish')
  await wire.send({ type: 'input.text', text: '/count 100000 1' })
  await wire.send({ type: 'response.create' })
  await wire.next((event) => textOf([event]) === ' 200')
  // Acknowledged while a response runs, and part of no turn yet.
  await wire.send({ type: 'input.text', text: 'said in between' })
  const known = wire.heard.filter((event) => event['seq'] !== undefined)
  await first.kill()

  const second = await startChild(data)
  const back = await overWebSocket(second.url)
  const last = known.at(-1)?.['seq'] as number
  await back.follow(session, last)
  const end = await back.next(isEnd)
  expect(end).toMatchObject({ type: 'response.error', error: { code: 'interrupted' }, response_id: known.at(-1)?.['response_id'] })
  const numbers = new Set(known.map((event) => event['seq']))
  for (const event of back.heard) expect(numbers.has(event['seq'])).toBe(false)
  const history = textOf(await say(back, '/history', { session }))
  const lines = history.split('\n')
  expect(lines.slice(0, 2)).toEqual(['user: remember the word swordfish', 'assistant: You said: remember the word swordfish'])
  expect(lines[2]).toBe('user: /count 100000 1')
  expect(lines[3]).toMatch(/^assistant: 1 2 3 /)
  expect(lines.at(-1)).toBe('user: said in between /history')
})

test('a sync stands between an input and its acknowledgement', { timeout: 60_000 }, async ({ skip }) => {
  if (!hasStrace()) skip('strace is not here (apt-get install strace)')
  const data = folder()
  const trace = join(data, 'trace')
  const server = await startChild(data, {
    prefix: ['strace', '-f', '-qq', '-s', '1000', '-e', 'trace=read,write,writev,fdatasync', '-o', trace],
  })
  const wire = await overSse(server.url)
  await wire.open()
  await wire.send({ type: 'input.text', text: 'marker-of-this-input', event_id: 'marker-of-this-event' })
  await server.kill()
  const lines = readFileSync(trace, 'utf8').split('\n')
  const asked = lines.findIndex((line) => /read\(.*marker-of-this-input/.test(line))
  const answered = lines.findIndex((line, index) => index > asked && /write.*accepted.*marker-of-this-event/.test(line))
  const synced = lines.findIndex((line, index) => index > asked && index < answered && /fdatasync(\(\d+\)| resumed>\))\s+= 0/.test(line))
  expect(asked).toBeGreaterThan(-1)
  expect(answered).toBeGreaterThan(asked)
  expect(synced).toBeGreaterThan(asked)
})

function hasStrace(): boolean {
  try {
    execFileSync('strace', ['-V'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

verifies('uamp:session:chat', 'the chat, and slots of inputs and requests, survive a restart, secrets in them sealed', async () => {
  const data = folder()
  const before = await startServer(counter, { data })
  const wire = await overWebSocket(before.url)
  const session = await wire.open({ chat: 'chat_1' })
  await wire.send({ type: 'input.text', text: '1', context: { chat_id: 'c', token: 'credential-of-a-client' } })
  await say(wire, '2', { create: { metadata: { run: 7 } } })
  await before.close({ graceMs: 0 })
  for (const name of readdirSync(data).filter((file) => file.includes('.db') || file.includes('sqlite')))
    expect(readFileSync(join(data, name)).includes('credential-of-a-client')).toBe(false)
  const after = await startServer({ ...mirror, name: 'counter' }, { data })
  const again = await overWebSocket(after.url)
  await again.follow(session, 0)
  expect(again.heard[0]).toMatchObject({ type: 'session.created', chat: 'chat_1', session_id: session })
  // What was said before may come in several pieces.
  await again.next(isEnd)
  const { messages, chat } = mirrored(await say(again, 'three', { session }))
  expect(chat).toBe('chat_1')
  expect(messages[0]).toMatchObject({ content: '12', context: { chat_id: 'c', token: 'credential-of-a-client' } })
})
