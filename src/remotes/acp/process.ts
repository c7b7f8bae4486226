import { spawn, type ChildProcessByStdio } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { UampError } from '../../protocol/errors.ts'
import { Asking, errorText, notificationText, readMessage, resultText, RPC, RpcError, type RpcMessage } from '../../wire/json-rpc.ts'
import { lineReader } from '../../wire/lines.ts'
import { childOptions, killGroup } from './child.ts'
import type { RemoteAcpOptions } from './index.ts'

/** Bytes of a message of the agent's; characters of its complaints that are kept. */
const LINE = 32 * 1024 * 1024
const COMPLAINTS = 2_000
/** How long it may take to end when it is asked to. */
const STOP_MS = 2_000
/** How long it may take to answer, but to a prompt. */
const ANSWER_MS = 60_000

export interface Handlers {
  /** What it asks of us. */
  readonly onRequest: (method: string, params: unknown) => unknown
  /** What it tells. It is not read on before that is taken. */
  readonly onNotification: (method: string, params: unknown) => Promise<void>
}

/** An ACP agent as a child process: messages in and out, until it ends or is ended. */
export class AcpProcess {
  /** Resolves when it has ended, with why. */
  readonly ended: Promise<Error>
  readonly #options: RemoteAcpOptions
  readonly #handlers: Handlers
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>
  readonly #asking = new Asking()
  readonly #onExit = (): void => killGroup(this.#child.pid, 'SIGKILL')
  #complaints = ''

  constructor(options: RemoteAcpOptions, cwd: string, handlers: Handlers) {
    this.#options = options
    this.#handlers = handlers
    const { command, args = [], env } = options
    const child = spawn(command, args, { ...childOptions(cwd, env), stdio: 'pipe' })
    this.#child = child
    child.stdin.on('error', () => undefined)
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#complaints = (this.#complaints + text).slice(-COMPLAINTS)
      this.#log('debug', 'An ACP agent says', { text: text.slice(0, COMPLAINTS) })
    })
    process.once('exit', this.#onExit)
    this.ended = new Promise((resolve) => {
      const over = (why: string): void => {
        process.removeListener('exit', this.#onExit)
        const said = this.#complaints.trim().split('\n').at(-1)
        const error = new UampError('provider_error', `The agent "${options.name}" ${why}${said ? `: ${said}` : ''}`)
        this.#asking.close(error)
        this.#log('info', 'An ACP agent is gone', { error: error.message })
        resolve(error)
      }
      child.once('error', (error) => over(`could not be started: ${error.message}`))
      child.once('close', (code, signal) => over(`has ended with ${signal ?? code}`))
    })
    void this.#read().catch((error: unknown) => this.#log('warn', 'An ACP agent could not be read', { error }))
  }

  /** However long it takes. */
  request(method: string, params: unknown, signal?: AbortSignal): Promise<unknown> {
    const { text, answer } = this.#asking.ask(method, params, { signal })
    this.#write(text)
    return answer
  }

  /** What must be answered in time. */
  async ask(method: string, params: unknown): Promise<unknown> {
    const signal = AbortSignal.timeout(ANSWER_MS)
    try {
      return await this.request(method, params, signal)
    } catch (thrown) {
      if (thrown !== signal.reason) throw thrown
      throw new UampError('timeout', `"${this.#options.name}" did not answer within ${ANSWER_MS} ms`)
    }
  }

  notify(method: string, params: unknown): void {
    this.#write(notificationText(method, params))
  }

  /** First asked, then made to. */
  async stop(): Promise<void> {
    this.#child.stdin.end()
    killGroup(this.#child.pid, 'SIGTERM')
    const hard = setTimeout(this.#onExit, STOP_MS)
    await this.ended
    clearTimeout(hard)
    // What it started may not have listened.
    this.#onExit()
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
    else if (message.kind === 'notification') await this.#handlers.onNotification(message.method, message.params)
    else if (message.kind === 'request') void this.#answer(message)
    // Agents print what is no message; it harms nobody.
    else if (message.kind === 'invalid') this.#log('debug', 'An ACP agent sent what is no message')
  }

  async #answer({ id, method, params }: RpcMessage & { kind: 'request' }): Promise<void> {
    try {
      this.#write(resultText(id, await this.#handlers.onRequest(method, params)))
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : String(thrown)
      this.#write(errorText(id, thrown instanceof RpcError ? thrown : new RpcError(RPC.internal, message)))
    }
  }

  #log(level: 'debug' | 'info' | 'warn', message: string, fields: object = {}): void {
    this.#options.log?.(level, message, { agent: this.#options.name, ...fields })
  }
}
