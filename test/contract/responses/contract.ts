import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { serve, type RunningServer } from '../../../src/serve/index.ts'
import { coin } from '../../support/money.ts'
import { runCells } from './run-cell.ts'
import { LOST, Marks, SHAPES, shapesAgent, type ShapeName } from './shapes.ts'
import { expectedOf } from './table.ts'
import type { Mode, Transport } from './transport.ts'

/** Nothing more comes after this. */
const HANG_MS = 20_000

/** Every shape over these transports, on one server. A test is one answer, in every mode in which a client can see it. */
export function contract(transports: readonly Transport[]): void {
  const marks = new Marks()
  let server: RunningServer
  beforeAll(async () => {
    server = await serve(shapesAgent(marks), { port: 0, data: 'memory', log: () => undefined })
  })
  afterAll(() => server.close({ graceMs: 0 }))

  for (const transport of transports) {
    for (const shape of Object.keys(SHAPES) as ShapeName[]) {
      const expected = expectedOf(transport, shape)
      const modes = Object.keys(expected) as Mode[]
      // A process that is killed is that of lost.test.ts.
      if (modes.length === 0 || shape === LOST) continue
      test(`${transport.name}: ${shape}`, { timeout: HANG_MS }, async () => {
        const seen = await runCells(transport, shape, {
          url: server.url,
          marks,
          coin: () => coin(server, '5'),
          after: (task) => onTestFinished(task),
          modes,
        })
        expect(seen).toEqual(expected)
      })
    }
  }
}
