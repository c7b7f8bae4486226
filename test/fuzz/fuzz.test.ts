import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { isLong, onlyInLongTrials } from '../support/trials.ts'

const RUN = fileURLToPath(new URL('run.js', import.meta.url))
/** Of the fuzzing alone. Starting, settling and measuring take some twenty seconds more. */
const SECONDS = isLong ? 120 : 6
/** The same each time, so that a change is what breaks it. */
const SEED = 20_261_116

async function fuzz(...options: string[]): Promise<{ status: number | null; output: string }> {
  const child = spawn(process.execPath, [RUN, ...options], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
  const status = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { status, output }
}

test('whatever is sent to any endpoint harms nobody', { timeout: (SECONDS + 240) * 1000 }, async () => {
  const { status, output } = await fuzz('--seconds', String(SECONDS), '--seed', String(SEED))
  expect(output).toContain('nobody was harmed')
  expect(status).toBe(0)
})

describe('what breaks a rule is found', () => {
  onlyInLongTrials('a trial of the trial: a server for each fault, which takes as long as all that is tried above')
  // At the same time: each of them mostly waits for its server to settle.
  test.concurrent.each([
    ['throw', 'no error of the server is unexplained'],
    ['crash', 'the server does not crash'],
    ['stall', '/health answers within 250 ms'],
    ['leak', 'memory is back to where it was'],
  ])('%s', { timeout: 60_000 }, async (fault, rule) => {
    // Nothing but the fault, and what is the server's own.
    const { status, output } = await fuzz('--seconds', '6', '--seed', '1', '--only', 'server', '--plant', fault)
    expect(output).toMatch(new RegExp(`BROKEN \\d+ times: ${rule}`))
    expect(output).toContain('again: npm run fuzz -- --seed 1')
    expect(status).toBe(1)
  })
})
