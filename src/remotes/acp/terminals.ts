import { spawn, type ChildProcess } from 'node:child_process'
import * as z from 'zod/mini'
import { RPC, RpcError } from '../../wire/json-rpc.ts'
import { childOptions, isGroup, killGroup } from './child.ts'
import type { Folder } from './folder.ts'

/** Terminals of one agent, and bytes of output that each keeps. The oldest output is dropped. */
const TERMINALS = 32
const OUTPUT = 1024 * 1024

/** How long the end of a command waits for the rest of its output. */
const DRAIN_MS = 200

interface Exit {
  readonly exitCode: number | null
  readonly signal: string | null
}

/** ACP, Terminals: `terminal/create`. */
export const Command = z.object({
  sessionId: z.string(),
  command: z.string(),
  args: z._default(z.array(z.string()), []),
  env: z._default(z.array(z.object({ name: z.string(), value: z.string() })), []),
  cwd: z.nullish(z.string()),
  outputByteLimit: z.nullish(z.number()),
})
export type Command = z.infer<typeof Command>

export const OfTerminal = z.object({ sessionId: z.string(), terminalId: z.string() })

/** Commands that an agent runs through us. They start in the folder, and end with the agent. */
export class Terminals {
  readonly #folder: Folder
  readonly #open = new Map<string, Terminal>()
  #last = 0
  #opening = 0
  #closed = false

  constructor(folder: Folder) {
    this.#folder = folder
  }

  async create(command: Command): Promise<string> {
    if (this.#open.size + this.#opening >= TERMINALS)
      throw new RpcError(RPC.invalidRequest, `${TERMINALS} terminals are open already: release some`)
    this.#opening++
    try {
      const cwd = command.cwd ? await this.#folder.find(command.cwd) : this.#folder.root
      if (this.#closed) throw new RpcError(RPC.internal, 'The agent has ended')
      const id = `term_${++this.#last}`
      this.#open.set(id, new Terminal(command, cwd))
      return id
    } finally {
      this.#opening--
    }
  }

  find(id: string): Terminal {
    const terminal = this.#open.get(id)
    if (!terminal) throw new RpcError(-32002, `There is no terminal "${id}"`)
    return terminal
  }

  release(id: string): void {
    this.find(id).kill()
    this.#open.delete(id)
  }

  close(): void {
    this.#closed = true
    for (const id of this.#open.keys()) this.release(id)
  }
}

class Terminal {
  readonly exit: Promise<Exit>
  readonly #child: ChildProcess
  /** `undefined` once no process of it is left. */
  #group: number | undefined
  readonly #limit: number
  #output = Buffer.alloc(0)
  #truncated = false
  #exit: Exit | undefined

  constructor({ command, args, env, outputByteLimit }: Command, cwd: string) {
    this.#limit = Math.min(outputByteLimit ?? OUTPUT, OUTPUT)
    const options = childOptions(cwd, Object.fromEntries(env.map(({ name, value }) => [name, value])))
    // Without arguments the command is a line for a shell.
    this.#child = spawn(command, args, { ...options, shell: args.length === 0, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child.stdout?.on('data', (chunk: Buffer) => this.#add(chunk))
    this.#child.stderr?.on('data', (chunk: Buffer) => this.#add(chunk))
    this.#group = this.#child.pid
    this.exit = new Promise((resolve) => {
      const over = (exit: Exit): void => resolve((this.#exit ??= exit))
      this.#child.once('close', (exitCode, signal) => over({ exitCode, signal }))
      this.#child.once('exit', (exitCode, signal) => {
        // Processes that it left behind may hold its pipes, and are killed with it later.
        if (!isGroup(this.#group)) this.#group = undefined
        setTimeout(over, DRAIN_MS, { exitCode, signal })
      })
      this.#child.once('error', (error) => {
        this.#add(Buffer.from(error.message))
        over({ exitCode: 127, signal: null })
      })
    })
  }

  get shown(): { output: string; truncated: boolean; exitStatus?: Exit } {
    return { output: this.#output.toString(), truncated: this.#truncated, ...(this.#exit && { exitStatus: this.#exit }) }
  }

  kill(): void {
    killGroup(this.#group, 'SIGKILL')
  }

  #add(chunk: Buffer): void {
    const output = Buffer.concat([this.#output, chunk])
    let from = Math.max(0, output.length - this.#limit)
    this.#truncated ||= from > 0
    // Never in the middle of a character.
    while (from > 0 && ((output[from] ?? 0) & 0xc0) === 0x80) from++
    this.#output = output.subarray(from)
  }
}
