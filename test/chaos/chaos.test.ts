import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'

const RUN = fileURLToPath(new URL('run.js', import.meta.url))

/** What `npm run chaos` does for hours, for half a minute. */
test('a server that is killed again and again loses nothing, and tells nothing twice', { timeout: 150_000 }, async () => {
  const child = spawn(process.execPath, [RUN, '--seed', '1', '--seconds', '30'], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill())
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
  const code = await new Promise((resolve) => child.once('close', resolve))
  expect(code, output).toBe(0)
})
