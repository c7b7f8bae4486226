import * as z from 'zod/mini'
import type { ClientMethods } from '../../core/ports/agent.ts'
import { list } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { parseParams, RPC, RpcError } from '../../wire/json-rpc.ts'
import { absolute, ExitAnswer, OutputAnswer, path, TerminalAnswer } from './schema.ts'
import type { ClientToolsOptions } from './tools.ts'

/** Terminals that one prompt may have open, and requests about them that may wait for the client. */
const OPEN = 32
const WAITING = 64
/** Terminals of one prompt that are over and can still be shown. */
const OVER = 1024
/** Bytes of output that a terminal keeps. */
const OUTPUT = 1024 * 1024

/** ACP, Terminals: `terminal/create`, as an agent asks for it. A relative `cwd` is one in the folder of the session. */
const Create = z.object({
  command: z.string().check(z.minLength(1)),
  args: z.nullish(list(z.string(), limits.list)),
  env: z.nullish(list(z.object({ name: z.string(), value: z.string() }), limits.list)),
  cwd: z.nullish(path),
  outputByteLimit: z.nullish(z.int().check(z.minimum(0))),
})
const OfTerminal = z.object({ terminalId: z.string() })
const Shown = z.extend(OutputAnswer, { exitStatus: z.nullish(ExitAnswer) })

/** A terminal that is open, and the bytes of output that it keeps. */
interface Open {
  readonly id: string
  readonly limit: number
}

/** The client's terminals, for an agent that knows ACP. They are released when the prompt is over, which also ends what runs in them. */
export class Terminals implements ClientMethods {
  readonly #options: Pick<ClientToolsOptions, 'cwd' | 'ask'>
  /** Ids of open terminals, with the bytes of output that each keeps. */
  readonly #open = new Map<string, number>()
  readonly #over = new Set<string>()
  /** Give up the terminals that are being made. */
  readonly #opening = new Set<(reason: unknown) => void>()
  readonly #ended = new AbortController()
  #waiting = 0

  constructor(options: Pick<ClientToolsOptions, 'cwd' | 'ask'>) {
    this.#options = options
  }

  has(method: string): boolean {
    return this.#methods.has(method)
  }

  /** The client has, or had, this terminal. */
  knows(id: unknown): boolean {
    return typeof id === 'string' && (this.#open.has(id) || this.#over.has(id))
  }

  async call(method: string, params: unknown): Promise<unknown> {
    const run = this.#methods.get(method)
    if (!run) throw new RpcError(RPC.methodNotFound, `There is no method "${method}"`)
    if (this.#waiting >= WAITING) throw new RpcError(RPC.invalidRequest, `${WAITING} requests about terminals wait for the client already`)
    this.#waiting++
    try {
      return await run(params)
    } finally {
      this.#waiting--
    }
  }

  close(): void {
    this.#ended.abort(new RpcError(RPC.invalidRequest, 'The prompt is over, and so are its terminals'))
    for (const giveUp of this.#opening) giveUp(this.#ended.signal.reason)
    for (const id of this.#open.keys()) this.#release(id).catch(() => undefined)
  }

  readonly #methods = new Map<string, (params: unknown) => Promise<unknown>>([
    ['terminal/create', (params) => this.#create(parseParams(Create, params))],
    ['terminal/output', (params) => this.#output(this.#find(params))],
    ['terminal/wait_for_exit', (params) => this.#exit(this.#find(params))],
    ['terminal/kill', async (params) => this.#ask('terminal/kill', this.#find(params)).then(() => ({}))],
    ['terminal/release', async (params) => this.#release(this.#find(params).id).then(() => ({}))],
  ])

  async #create({ command, args, env, cwd, outputByteLimit }: z.infer<typeof Create>): Promise<unknown> {
    const { signal } = this.#ended
    signal.throwIfAborted()
    if (this.#open.size + this.#opening.size >= OPEN)
      throw new RpcError(RPC.invalidRequest, `${OPEN} terminals are open already: release some`)
    const limit = Math.min(outputByteLimit ?? OUTPUT, OUTPUT)
    const folder = cwd == null ? this.#options.cwd : absolute(cwd, this.#options.cwd)
    const program = { command, args: args ?? [], env: env ?? [], cwd: folder, outputByteLimit: limit }
    return new Promise((resolve, reject) => {
      this.#opening.add(reject)
      // Without a signal: a terminal that comes too late must be released, and for that we need its id.
      const made = this.#options.ask('terminal/create', program).then((answer) => {
        const { terminalId } = parseParams(TerminalAnswer, answer)
        this.#open.set(terminalId, limit)
        if (signal.aborted) this.#release(terminalId).catch(() => undefined)
        return { terminalId }
      })
      made.then(resolve, reject).finally(() => this.#opening.delete(reject))
    })
  }

  async #output(terminal: Open): Promise<unknown> {
    const { output, truncated, exitStatus } = parseParams(Shown, await this.#ask('terminal/output', terminal))
    return { ...lastBytes(output, terminal.limit, truncated), ...(exitStatus && { exitStatus }) }
  }

  async #exit(terminal: Open): Promise<unknown> {
    const { exitCode = null, signal = null } = parseParams(ExitAnswer, await this.#ask('terminal/wait_for_exit', terminal))
    return { exitCode, signal }
  }

  #find(params: unknown): Open {
    const { terminalId: id } = parseParams(OfTerminal, params)
    const limit = this.#open.get(id)
    if (limit === undefined) throw new RpcError(-32002, `There is no terminal "${id}"`)
    return { id, limit }
  }

  #ask(method: string, { id: terminalId }: Open): Promise<unknown> {
    return this.#options.ask(method, { terminalId }, this.#ended.signal)
  }

  async #release(terminalId: string): Promise<void> {
    this.#open.delete(terminalId)
    this.#over.add(terminalId)
    for (const oldest of this.#over) {
      if (this.#over.size <= OVER) break
      this.#over.delete(oldest)
    }
    // Also when the prompt is over.
    await this.#options.ask('terminal/release', { terminalId })
  }
}

/** A client may send more than it was asked to keep. Never cuts a character. */
function lastBytes(output: string, limit: number, truncated: boolean): { readonly output: string; readonly truncated: boolean } {
  // No character has more than three bytes for each of its UTF-16 units.
  if (output.length * 3 <= limit) return { output, truncated }
  const bytes = new TextEncoder().encode(output)
  if (bytes.length <= limit) return { output, truncated }
  let from = bytes.length - limit
  while (from < bytes.length && ((bytes[from] ?? 0) & 0xc0) === 0x80) from++
  return { output: new TextDecoder().decode(bytes.subarray(from)), truncated: true }
}
