import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { folder, MAIN } from './clients.ts'

const ACPX = fileURLToPath(new URL('../node_modules/acpx/dist/cli.js', import.meta.url))

test('acpx talks to `uamp acp`', { timeout: 60_000 }, async () => {
  const home = await folder()
  const agent = `${process.execPath} ${MAIN} acp`
  const { stdout } = await promisify(execFile)(process.execPath, [ACPX, '--agent', agent, '--approve-all', 'exec', 'hello'], {
    cwd: home,
    env: { ...process.env, HOME: home, UAMP_DATA: 'memory' },
    timeout: 50_000,
  })
  expect(stdout).toContain('You said: hello')
})
