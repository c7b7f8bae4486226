import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { isLong } from '../support/trials.ts'

const RUN = fileURLToPath(new URL('run.js', import.meta.url))
const SECONDS = isLong ? 30 : 8
/** The same each time, so that a change is what breaks it. */
const SEED = 20_261_116

test('nothing is lost by kills in a row, and nothing told twice', { timeout: 180_000 }, async () => {
  const child = spawn(process.execPath, [RUN, '--seconds', String(SECONDS), '--seed', String(SEED)], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
  const status = await new Promise<number | null>((resolve) => child.once('close', resolve))
  expect(output).toContain('nothing was lost, and nothing told twice')
  expect(status).toBe(0)
})
