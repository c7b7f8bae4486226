import { spawn, type ChildProcessByStdio } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import type { Log } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { Asking, errorText, notificationText, readMessage, resultText, RPC, RpcError, type RpcMessage } from '../../wire/json-rpc.ts'
import { lineReader } from '../../wire/lines.ts'

/** Bytes of a message of the agent's; characters of its complaints that are kept. */
const LINE = 32 * 1024 * 1024
const COMPLAINTS = 2_000
/** How long it may take to end when it is asked to. */
const STOP_MS = 2_000

/** What a program gets of our environment: nothing that could be a key. */
const HARMLESS = [
  'PATH',
  'HOME',
  'LANG',
  'LC_ALL',
  'TERM',
  'USER',
  'LOGNAME',
  'SHELL',
  'TMPDIR',
  'SYSTEMROOT',
  'APPDATA',
  'USERPROFILE',
  'PATHEXT',
]

export function harmlessEnv(env: Readonly<Record<string, string>> = {}): Record<string, string> {
  const kept = HARMLESS.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]))
  return { ...(Object.fromEntries(kept) as Record<string, string>), ...env }
}

export interface ProcessOptions {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>> | undefined
  readonly cwd: string
  readonly log: Log
  /** What it asks of us. */
  readonly onRequest: (method: string, params: unknown) => Promise<unknown>
  /** What it tells. It is not read on before that is taken. */
  readonly onNotification: (method: string, params: unknown) => Promise<void>
}

/** An ACP agent as a child process: messages in and out, until it ends or is ended. */
export class AcpProcess {
  /** Resolves when it has ended, with why. */
  readonly ended: Promise<Error>
  readonly #options: ProcessOptions
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>
  readonly #asking = new Asking()
  readonly #onExit = (): void => killGroup(this.#child.pid, 'SIGKILL')
  #complaints = ''

  constructor(options: ProcessOptions) {
    this.#options = options
    const { command, args, env, cwd, name, log } = options
    // A group of its own, so that what it starts ends with it.
    const child = spawn(command, args, { cwd, env: harmlessEnv(env), stdio: 'pipe', detached: process.platform !== 'win32' })
    this.#child = child
    child.stdin.on('error', () => undefined)
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#complaints = (this.#complaints + text).slice(-COMPLAINTS)
      log('debug', 'An ACP agent says', { agent: name, text: text.slice(0, COMPLAINTS) })
    })
    process.once('exit', this.#onExit)
    this.ended = new Promise((resolve) => {
      const over = (why: string): void => {
        process.removeListener('exit', this.#onExit)
        const said = this.#complaints.trim().split('\n').at(-1)
        const error = new UampError('provider_error', `The agent "${name}" ${why}${said ? `: ${said}` : ''}`)
        this.#asking.close(error)
        resolve(error)
      }
      child.once('error', (error) => over(`could not be started: ${error.message}`))
      child.once('close', (code, signal) => over(`has ended with ${signal ?? code}`))
    })
    void this.#read().catch((error: unknown) => log('warn', 'An ACP agent could not be read', { agent: name, error }))
  }

  request(method: string, params: unknown): Promise<unknown> {
    const { text, answer } = this.#asking.ask(method, params)
    this.#write(text)
    return answer
  }

  notify(method: string, params: unknown): void {
    this.#write(notificationText(method, params))
  }

  /** First asked, then made to. */
  async stop(): Promise<void> {
    this.#child.stdin.end()
    killGroup(this.#child.pid, 'SIGTERM')
    const hard = setTimeout(() => killGroup(this.#child.pid, 'SIGKILL'), STOP_MS)
    await this.ended
    clearTimeout(hard)
    // What it started may not have listened.
    killGroup(this.#child.pid, 'SIGKILL')
  }

  #write(text: string): void {
    if (this.#child.stdin.writable) this.#child.stdin.write(`${text}\n`)
  }

  async #read(): Promise<void> {
    const lines = lineReader(LINE)
    for await (const chunk of this.#child.stdout) {
      for (const line of lines(chunk as Uint8Array)) if (line !== undefined && line.trim() !== '') await this.#take(readMessage(line))
    }
  }

  async #take(message: RpcMessage): Promise<void> {
    if (message.kind === 'response') this.#asking.settle(message)
    else if (message.kind === 'notification') await this.#options.onNotification(message.method, message.params)
    else if (message.kind === 'request') void this.#answer(message)
    // Agents print what is no message; it harms nobody.
    else if (message.kind === 'invalid') this.#options.log('debug', 'An ACP agent sent what is no message', { agent: this.#options.name })
  }

  async #answer({ id, method, params }: RpcMessage & { kind: 'request' }): Promise<void> {
    try {
      this.#write(resultText(id, await this.#options.onRequest(method, params)))
    } catch (thrown) {
      const error =
        thrown instanceof RpcError ? thrown : new RpcError(RPC.internal, thrown instanceof Error ? thrown.message : String(thrown))
      this.#write(errorText(id, error))
    }
  }
}

/** A process and all that it started. */
export function killGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, signal)
  } catch {
    // It has gone.
  }
}
