import { spawn, type ChildProcessByStdio } from 'node:child_process'
import process from 'node:process'
import type { Readable, Writable } from 'node:stream'
import { ReadBuffer, serializeMessage, type JSONRPCMessage, type Transport } from '@modelcontextprotocol/client'

/** How long the program has to end after its input has ended, and then after SIGTERM. */
const LEAVE_MS = 300
const STOP_MS = 700

export interface ProgramOptions {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string | undefined
  readonly onComplaint: (text: string) => void
}

/** An MCP server that is a program. It ends quickly, with all processes that it started; the library's transport leaves those behind. */
export class Program implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly #options: ProgramOptions
  readonly #read = new ReadBuffer()
  readonly #onExit = (): void => this.#kill('SIGKILL')
  #child: ChildProcessByStdio<Writable, Readable, Readable> | undefined
  #over: Promise<void> = Promise.resolve()

  constructor(options: ProgramOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    const { command, args, env, cwd, onComplaint } = this.#options
    const child = spawn(command, args, { env, cwd, detached: true, stdio: 'pipe' })
    this.#child = child
    process.once('exit', this.#onExit)
    let leaving: ReturnType<typeof setTimeout> | undefined
    this.#over = new Promise((resolve) => {
      const over = (): void => {
        process.removeListener('exit', this.#onExit)
        clearTimeout(leaving)
        this.onclose?.()
        resolve()
      }
      child.once('close', over)
      child.once('exit', () => {
        // Kills its group. A process that has left the group may still hold its pipes.
        this.#onExit()
        leaving = setTimeout(() => [child.stdout, child.stderr].forEach((pipe) => pipe.destroy()), LEAVE_MS)
      })
    })
    // Always read, because a full pipe would block the server.
    child.stderr.setEncoding('utf8').on('data', onComplaint)
    child.stdin.on('error', (error) => this.onerror?.(error))
    child.stdout.on('data', (chunk: Buffer) => this.#take(chunk))
    await new Promise<void>((resolve, reject) => child.once('spawn', resolve).on('error', reject))
  }

  send(message: JSONRPCMessage): Promise<void> {
    return new Promise((resolve, reject) => {
      if (!this.#child?.stdin.writable) return reject(new Error('The program has ended'))
      this.#child.stdin.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()))
    })
  }

  /** Ends its input, then sends SIGTERM, then SIGKILL. */
  async close(): Promise<void> {
    this.#child?.stdin.end()
    const asking = setTimeout(() => this.#kill('SIGTERM'), LEAVE_MS)
    const making = setTimeout(() => this.#kill('SIGKILL'), LEAVE_MS + STOP_MS)
    await this.#over
    clearTimeout(asking)
    clearTimeout(making)
  }

  #take(chunk: Buffer): void {
    try {
      this.#read.append(chunk)
    } catch (error) {
      // The message is too long.
      this.onerror?.(error as Error)
      return void this.close()
    }
    for (;;) {
      try {
        const message = this.#read.readMessage()
        if (message === null) return
        this.onmessage?.(message)
      } catch (error) {
        this.onerror?.(error as Error)
      }
    }
  }

  #kill(signal: NodeJS.Signals): void {
    try {
      if (this.#child?.pid !== undefined) process.kill(-this.#child.pid, signal)
    } catch {
      // It has ended already.
    }
  }
}
