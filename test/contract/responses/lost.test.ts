import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startChild } from '../../support/child.ts'
import { startServer } from '../../support/server.ts'
import { Seeing, type Seen } from './seen.ts'
import { LOST, promptFor, shapeOf, shapesAgent } from './shapes.ts'
import { expectedOf } from './table.ts'
import type { Reading } from './transport.ts'
import { TRANSPORTS } from './transports/index.ts'

const never = new Promise<never>(() => undefined)

/** A client that has no answer after this never gets one. */
const HANG_MS = 5000

/** One process for all: each client has heard the first word when it is killed. Then another one opens the same folder. */
test('a beginning that is lost by kill -9 has an end for everybody who comes back', { timeout: 60_000 }, async () => {
  const data = mkdtempSync(join(tmpdir(), 'uamp-lost-'))
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  const after = (task: () => void): void => onTestFinished(task)
  const child = await startChild(data, { program: [join(import.meta.dirname, 'killed-server.js'), data] })

  const asked = TRANSPORTS.flatMap((transport) =>
    Object.entries(expectedOf(transport, LOST)).map(([mode, seen]) => ({ name: `${transport.name}, ${mode}`, transport, mode, seen })),
  )
  const talks = await Promise.all(
    asked.map(async ({ transport }, index) => {
      const seeing = new Seeing()
      const about = { shape: shapeOf(LOST), prompt: promptFor(LOST, index, false), streamed: true, leaves: false }
      const waits = { cancelDue: never, stopped: never, letGo: () => undefined, coin: 'none' }
      const talk = transport.talk({ url: child.url, ...about, ...waits, seeing, after })
      talk.over.catch(() => undefined)
      await seeing.when(() => seeing.text === 'Lost.')
      return talk
    }),
  )
  await child.kill()

  const { url } = await startServer(shapesAgent(), { data })
  const seen: Record<string, Seen | string> = {}
  for (const [index, { name, mode }] of asked.entries()) {
    const seeing = new Seeing()
    const reading = talks[index]?.again?.({ url, mode: mode as Reading['mode'], seeing, after })
    const read = reading?.then(() => seeing.seen(), String)
    seen[name] = await Promise.race([read ?? 'it cannot be read again', hang()])
  }
  expect(seen).toEqual(Object.fromEntries(asked.map((each) => [each.name, each.seen])))
})

function hang(): Promise<string> {
  return new Promise((resolve) => setTimeout(resolve, HANG_MS, 'it never ends'))
}
