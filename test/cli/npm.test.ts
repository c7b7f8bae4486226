import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { answering } from './answering.ts'
import { inherited, project } from './run.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A server below npm. Signals go to npm alone, as from a supervisor that knows nothing of what npm starts. */
async function below(command: string, args: readonly string[], cwd: string) {
  const env = { ...inherited(), UAMP_DATA: 'memory' }
  const npm = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'], detached: true })
  const group = npm.pid as number
  const exit = once(npm, 'exit')
  let stdout = ''
  const isGone = (): boolean => {
    try {
      return !process.kill(-group, 0)
    } catch {
      return true
    }
  }
  onTestFinished(() => void (isGone() || process.kill(-group, 'SIGKILL')))
  const url = await new Promise<string>((resolve, reject) => {
    npm.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      const found = / at (http:\/\/\S+)[^]*npx uamp chat/.exec(stdout)?.[1]
      if (found !== undefined) resolve(found)
    })
    void exit.then(() => reject(new Error(`npm ended: ${stdout}`)))
  })
  return { url, isGone, exit, kill: (signal: NodeJS.Signals = 'SIGTERM') => npm.kill(signal), printed: () => stdout }
}

describe.skipIf(process.platform === 'win32')('below npm', () => {
  test('SIGTERM to `npm start` lets a running answer finish and leaves nothing behind', async () => {
    const { url, isGone, exit, kill, printed } = await below('npm', ['start', '--', '--port', '0'], ROOT)
    const { whole } = await answering(url, '/count 20 20')
    kill()
    const text = await whole
    expect(text).toContain('"text":" 20"')
    expect(text).toContain('response.done')
    expect(await exit).toEqual([0, null])
    expect(printed()).toContain('Stopping: an answer is being finished')
    await expect.poll(isGone).toBe(true)
  })

  test('SIGHUP to `npm start`, which npm does not hand on, left the server behind', async () => {
    const { url, isGone, kill } = await below('npm', ['start', '--', '--port', '0'], ROOT)
    const { whole } = await answering(url, '/count 20 20')
    kill('SIGHUP')
    expect(await whole).toContain('response.done')
    await expect.poll(isGone, { timeout: 10_000 }).toBe(true)
  })

  test('SIGTERM to `npx uamp serve` reaches the server too, which npx does not wait for', async () => {
    const cwd = await project()
    await mkdir(join(cwd, 'node_modules/.bin'))
    await symlink('../uamp/dist/cli/main.js', join(cwd, 'node_modules/.bin/uamp'))
    const { url, isGone, kill } = await below('npx', ['uamp', 'serve', '--port', '0'], cwd)
    const { whole } = await answering(url, '/count 20 20')
    kill()
    expect(await whole).toContain('response.done')
    await expect.poll(isGone, { timeout: 10_000 }).toBe(true)
  })
})
