import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { isLong } from '../support/trials.ts'

const RUN = fileURLToPath(new URL('run.js', import.meta.url))
const SPENDS = isLong ? 1_500 : 600
/** The same each time, so that a change is what breaks it. */
const SEED = 20_261_118

test('no money is lost or made by kills, and no token is overspent', { timeout: 300_000 }, async () => {
  const args = [RUN, '--spends', String(SPENDS), '--seed', String(SEED)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
  const status = await new Promise<number | null>((resolve) => child.once('close', resolve))
  expect(output).toContain('no money was lost or made')
  expect(status).toBe(0)
})
