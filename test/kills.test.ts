import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { connect } from '../src/client/node.ts'
import { startChild } from './support/child.ts'
import { freePort } from './support/free-port.ts'
import { isEnd, textOf } from './support/talk.ts'
import { overSse, overWebSocket, type Heard } from './support/wire.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'uamp-kills-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const numbersOf = (events: readonly Heard[]): number[] => events.flatMap((event) => (event['seq'] as number | undefined) ?? [])

describe.each([
  ['WebSocket', overWebSocket],
  ['SSE', overSse],
] as const)('killed again and again, over %s', (_, connectTo) => {
  test('each response is ended for whoever comes back, and no number is used twice', { timeout: 60_000 }, async () => {
    const data = folder()
    const seen: Heard[] = []
    let session: string | undefined
    let request = ''
    for (let kill = 0; kill < 4; kill++) {
      const server = await startChild(data)
      const wire = await connectTo(server.url)
      const after = numbersOf(seen).at(-1) ?? 0
      if (session === undefined) session = await wire.open()
      else await wire.follow(session, after)
      if (request !== '') {
        const end = await wire.next(isEnd)
        expect(end).toMatchObject({ type: 'response.error', error: { code: 'interrupted' } })
        // Whoever was only acknowledged finds the response by the request that it names.
        const asked = [...seen, ...wire.heard].filter((event) => event['extensions']?.uamp?.request === request)
        expect(asked.map((event) => event['response_id'])).toContain(end['response_id'])
      }
      request = `request-${kill}`
      await wire.send({ type: 'input.text', text: '/count 100000 1', session_id: session })
      await wire.send({ type: 'response.create', event_id: request, session_id: session })
      // Every other time it dies before anything of the response is committed, or told.
      if (kill % 2 === 0) await wire.next((event) => textOf([event]) === '1')
      await server.kill()
      seen.push(...wire.heard.filter((event) => event['seq'] !== undefined))
    }
    const numbers = numbersOf(seen)
    expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other))
    expect(numbers.at(-1)).toBeLessThan(1e12)
    const ids = seen.map((event) => event['event_id'] as string)
    expect(new Set(ids).size).toBe(ids.length)
  })
})

test('our client is told of the end after two kills in a row', { timeout: 60_000 }, async () => {
  const data = folder()
  const port = await freePort()
  const program = [join(import.meta.dirname, '../dist/cli/main.js'), 'serve', '--port', String(port), '--data', data]
  let server = await startChild(data, { program })
  const client = connect(server.url)
  onTestFinished(() => client.close())
  const session = await client.session()
  for (let kill = 0; kill < 3; kill++) {
    const answer = session.ask('/count 100000 1')[Symbol.asyncIterator]()
    await answer.next()
    await server.kill()
    server = await startChild(data, { program })
    const ended = (async () => {
      for (let step = await answer.next(); !step.done; step = await answer.next());
    })()
    await expect(ended).rejects.toMatchObject({ code: 'interrupted' })
  }
})
