import { spawn, type ChildProcessByStdio } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { unlessAborted } from '../../core/basics/time.ts'
import { UampError } from '../../protocol/errors.ts'
import { Asking, errorText, notificationText, readMessage, resultText, RPC, RpcError, type RpcMessage } from '../../wire/json-rpc.ts'
import { linesIn } from '../../wire/lines.ts'
import { childOptions, killGroup } from './child.ts'
import type { RemoteAcpOptions } from './index.ts'

/** Bytes of one message of the agent; characters of its error output that are kept. */
const LINE = 32 * 1024 * 1024
const COMPLAINTS = 2_000
/** Bytes that the program has not read. With more it counts as stuck, and is ended. */
const UNHEARD = 128 * 1024 * 1024
/** How long it may take to end after it was asked to, and after one of its pipes has closed. */
const STOP_MS = 2_000
const LOST_MS = 500
const ANSWER_MS = 60_000

export interface Handlers {
  /** A request of the agent. `bytes`: the length of the message. */
  readonly onRequest: (method: string, params: unknown, bytes: number) => unknown
  readonly onNotification: (method: string, params: unknown, bytes: number) => void
}

/** A message was not sent, because the program does not read any more. */
export class Unheard extends Error {}

/** An ACP agent as a child process: messages in and out, until it ends or is ended. */
export class AcpProcess {
  /** Resolves with the reason when it has ended. */
  readonly ended: Promise<Error>
  readonly #options: RemoteAcpOptions
  readonly #handlers: Handlers
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>
  readonly #asking = new Asking()
  readonly #onExit = (): void => killGroup(this.#child.pid, 'SIGKILL')
  #complaints = ''
  #gone = false
  #killing: ReturnType<typeof setTimeout> | undefined

  constructor(options: RemoteAcpOptions, cwd: string, handlers: Handlers) {
    this.#options = options
    this.#handlers = handlers
    const { command, args = [], env } = options
    const child = spawn(command, args, { ...childOptions(cwd, env), stdio: 'pipe' })
    this.#child = child
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#complaints = (this.#complaints + text).slice(-COMPLAINTS)
      this.#log('debug', 'An ACP agent says', { text: text.slice(0, COMPLAINTS) })
    })
    process.once('exit', this.#onExit)
    this.ended = new Promise((resolve) => {
      const over = (why: string): void => {
        this.#gone = true
        process.removeListener('exit', this.#onExit)
        clearTimeout(this.#killing)
        const error = new UampError('provider_error', `The agent "${options.name}" ${why}`)
        this.#asking.close(error)
        // Its error output is for the operator only.
        this.#log('info', 'An ACP agent is gone', { error: error.message, said: this.#complaints })
        resolve(error)
      }
      child.once('error', (error) => {
        this.#log('error', 'The program of an ACP agent could not be started', { error })
        over('could not be started')
      })
      // `close` also follows an `error` at the start.
      child.once('close', (code, signal) => this.#child.pid !== undefined && over(`has ended with ${signal ?? code}`))
    })
    child.once('exit', () => {
      // Its own children end with it. A process that left its group may still hold its pipes.
      this.#onExit()
      this.#killAfter(LOST_MS)
    })
    child.stdin.on('error', () => this.#killAfter(LOST_MS))
    void this.#read()
      .catch((error: unknown) => this.#log('warn', 'An ACP agent could not be read', { error }))
      .finally(() => this.#killAfter(LOST_MS))
  }

  /** A request without a time limit. `sent` rejects if the program did not read it. */
  request(method: string, params: unknown, signals: readonly AbortSignal[] = []) {
    const unheard = new AbortController()
    // For a request that `Asking` refuses.
    let sent: Promise<void> = Promise.reject(new Unheard())
    sent.catch(() => undefined)
    const send = (text: string): void => {
      sent = this.#write(text)
      sent.catch((reason: unknown) => unheard.abort(reason))
    }
    const answer = this.#asking.request(method, params, { send, signal: AbortSignal.any([unheard.signal, ...signals]) })
    return { sent, answer }
  }

  /** A request with a time limit. A program that does not answer in time is stuck, and is ended. */
  async ask(method: string, params: unknown, until?: AbortSignal): Promise<unknown> {
    const { name, timeoutMs = ANSWER_MS } = this.#options
    const late = AbortSignal.timeout(timeoutMs)
    const signal = until ? AbortSignal.any([until, late]) : late
    const { sent, answer } = this.request(method, params, [signal])
    try {
      return await unlessAborted(
        sent.then(() => answer),
        signal,
      )
    } catch (thrown) {
      if (thrown !== late.reason) throw thrown
      this.#killAfter(0)
      throw new UampError('timeout', `"${name}" did not answer within ${timeoutMs} ms`)
    }
  }

  notify(method: string, params: unknown): void {
    this.#tell(notificationText(method, params))
  }

  /** Asks it to end, and kills it if it does not. */
  async stop(): Promise<void> {
    this.#child.stdin.end()
    killGroup(this.#child.pid, 'SIGTERM')
    this.#killAfter(STOP_MS)
    await this.ended
  }

  #killAfter(ms: number): void {
    if (this.#gone) return
    this.#killing ??= setTimeout(() => {
      this.#onExit()
      this.#child.stdout.destroy()
      this.#child.stderr.destroy()
    }, ms)
  }

  #write(text: string): Promise<void> {
    const { stdin } = this.#child
    if (stdin.writableLength > UNHEARD) this.#killAfter(0)
    return new Promise((resolve, reject) => {
      if (!stdin.writable) return reject(new Unheard())
      stdin.write(`${text}\n`, (error) => (error ? reject(new Unheard()) : resolve()))
    })
  }

  #tell(text: string): void {
    this.#write(text).catch(() => undefined)
  }

  async #read(): Promise<void> {
    for await (const line of linesIn(this.#child.stdout, LINE)) if (line !== undefined) this.#take(readMessage(line), line.length)
  }

  #take(message: RpcMessage, bytes: number): void {
    if (message.kind === 'response') this.#asking.settle(message)
    else if (message.kind === 'notification') this.#handlers.onNotification(message.method, message.params, bytes)
    else if (message.kind === 'request') void this.#answer(message, bytes)
    // Some agents print other things to their output, which does no harm.
    else if (message.kind === 'invalid' && message.id === null) this.#log('debug', 'An ACP agent sent something that is no message')
    else if (message.kind === 'invalid') this.#tell(errorText(message.id, message.error))
  }

  async #answer({ id, method, params }: RpcMessage & { kind: 'request' }, bytes: number): Promise<void> {
    try {
      this.#tell(resultText(id, await this.#handlers.onRequest(method, params, bytes)))
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : String(thrown)
      this.#tell(errorText(id, thrown instanceof RpcError ? thrown : new RpcError(RPC.internal, message)))
    }
  }

  #log(level: 'debug' | 'info' | 'warn' | 'error', message: string, fields: object = {}): void {
    this.#options.log?.(level, message, { agent: this.#options.name, ...fields })
  }
}
