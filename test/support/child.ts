import { spawn, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export interface ChildServer {
  readonly url: string
  readonly process: ChildProcess
  /** As a power cut would end it. */
  kill(): Promise<void>
}

/** The built server, or another `program`, in a process of its own, so that it can be killed. */
export async function startChild(
  data: string,
  { prefix = [] as readonly string[], program = [MAIN, 'serve', '--port', '0', '--data', data] as readonly string[], env = {} } = {},
): Promise<ChildServer> {
  const [command, ...args] = [...prefix, process.execPath, ...program]
  // A group of its own: what runs under strace must end with it.
  const child = spawn(command as string, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true, env: { ...process.env, ...env } })
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  let output = ''
  const url = await new Promise<string>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      output += chunk.toString()
      const found = /http:\/\/(?:localhost|127\.0\.0\.1):\d+/.exec(output)
      if (found) resolve(found[0])
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    void gone.then(() => reject(new Error(`the server ended: ${output}`)))
  })
  const kill = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid as number), 'SIGKILL')
    await gone
  }
  onTestFinished(kill)
  return { url, process: child, kill }
}
