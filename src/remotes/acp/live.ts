import * as z from 'zod/mini'
import { UampError } from '../../protocol/errors.ts'
import { isRecord, type Slot } from '../../protocol/json.ts'
import { RPC, RpcError } from '../../wire/json-rpc.ts'
import { Folder } from './folder.ts'
import { Option } from './permission.ts'
import { AcpProcess } from './process.ts'
import type { Accepts } from './prompt.ts'
import { Terminals, type Command } from './terminals.ts'
import type { RemoteAcpOptions } from './index.ts'

/** How long it may take to say who it is, and to open a session. */
const START_MS = 60_000

export interface PermissionRequest {
  readonly toolCall: unknown
  readonly options: readonly Option[]
  readonly answer: (result: Slot | undefined) => void
}

export interface LiveEvents {
  readonly onUpdate: (sessionId: string, update: Slot) => Promise<void>
  readonly onPermission: (sessionId: string, permission: PermissionRequest) => void
  readonly onEnd: () => void
}

const flag = z.nullish(z.boolean())
const Initialized = z.object({
  protocolVersion: z.number(),
  agentCapabilities: z.nullish(
    z.object({ loadSession: flag, promptCapabilities: z.nullish(z.object({ image: flag, audio: flag, embeddedContext: flag })) }),
  ),
})
const text = z.nullish(z.string())
const Select = z.object({
  id: z.string(),
  category: text,
  currentValue: z.optional(z.unknown()),
  options: z.optional(z.array(z.object({ value: z.string(), name: z.optional(z.string()), description: text }))),
})
const Opened = z.object({
  sessionId: z.optional(z.string()),
  modes: z.nullish(z.object({ currentModeId: z.string(), availableModes: z.array(z.object({ id: z.string(), name: z.string() })) })),
  configOptions: z.nullish(z.array(z.unknown())),
})
const Commands = z.array(z.object({ name: z.string(), description: z.optional(z.string()) }))
const OfSession = z.object({ sessionId: z.string() })
const Read = z.object({ path: z.string(), line: z.nullish(z.number()), limit: z.nullish(z.number()) })
const Write = z.object({ path: z.string(), content: z.string() })
const Terminal = z.object({ terminalId: z.string() })
const Create = z.object({
  command: z.string(),
  args: z.optional(z.array(z.string())),
  env: z.optional(z.array(z.object({ name: z.string(), value: z.string() }))),
  cwd: text,
  outputByteLimit: z.nullish(z.number()),
})
const Permission = z.object({ sessionId: z.string(), toolCall: z.unknown(), options: z.array(Option) })

/** One run of the program: what it can do, its sessions, and what it asks of us. */
export class Live {
  readonly process: AcpProcess
  accepts: Accepts = { image: false, audio: false, embeddedContext: false }
  /** As our clients are told them: `extensions.uamp` of the capabilities. */
  choices: Slot = {}
  readonly #options: RemoteAcpOptions
  readonly #events: LiveEvents
  readonly #folder: Folder
  readonly #terminals: Terminals
  /** Sessions that are open in this run. */
  readonly #open = new Map<string, { mode: string | undefined; model: string | undefined }>()
  #modelOption: string | undefined
  #loads = false

  private constructor(options: RemoteAcpOptions, events: LiveEvents, cwd: string) {
    this.#options = options
    this.#events = events
    this.#folder = new Folder(cwd)
    this.#terminals = new Terminals(this.#folder)
    const { name, command, args = [], env, log = () => undefined } = options
    this.process = new AcpProcess({
      name,
      command,
      args,
      env,
      cwd,
      log,
      onRequest: (method, params) => this.#asked(method, params),
      onNotification: (method, params) => this.#told(method, params),
    })
    void this.process.ended.then(() => {
      this.#terminals.close()
      events.onEnd()
    })
  }

  static async start(options: RemoteAcpOptions, events: LiveEvents): Promise<Live> {
    const cwd = await new Folder(options.folder).root().catch(() => {
      throw new UampError('agent_offline', `The folder ${options.folder} of "${options.name}" is not there`)
    })
    const live = new Live(options, events, cwd)
    try {
      await live.#initialize()
      return live
    } catch (thrown) {
      await live.stop()
      throw thrown instanceof UampError
        ? thrown
        : new UampError('provider_error', `"${options.name}" does not speak ACP: ${(thrown as Error).message}`)
    }
  }

  async stop(): Promise<void> {
    this.#terminals.close()
    await this.process.stop()
  }

  async open(): Promise<string> {
    const opened = Opened.parse(await this.#within(this.process.request('session/new', { cwd: await this.#folder.root(), mcpServers: [] })))
    if (opened.sessionId === undefined) throw new UampError('provider_error', `"${this.#options.name}" opened no session`)
    this.#note(opened.sessionId, opened)
    return opened.sessionId
  }

  /** Whether a session of before can be gone on with: it is open, or can be loaded. */
  async take(id: string): Promise<boolean> {
    if (this.#open.has(id)) return true
    if (!this.#loads) return false
    try {
      const loaded = await this.#within(
        this.process.request('session/load', { sessionId: id, cwd: await this.#folder.root(), mcpServers: [] }),
      )
      this.#note(id, Opened.parse(loaded ?? {}))
      return true
    } catch (thrown) {
      if (thrown instanceof RpcError) return false
      throw thrown
    }
  }

  async choose(id: string, { mode, model }: { readonly mode: string | undefined; readonly model: string | undefined }): Promise<void> {
    const session = this.#open.get(id)
    if (!session) return
    if (mode !== undefined && mode !== session.mode && has(this.choices['modes'], mode)) {
      await this.process.request('session/set_mode', { sessionId: id, modeId: mode })
      session.mode = mode
    }
    if (model !== undefined && model !== session.model && this.#modelOption !== undefined && has(this.choices['models'], model)) {
      await this.process.request('session/set_config_option', { sessionId: id, configId: this.#modelOption, value: model })
      session.model = model
    }
  }

  /** Takes an update that is about the agent and not about the answer. */
  learn({ sessionUpdate, availableCommands }: Slot): boolean {
    if (sessionUpdate !== 'available_commands_update') return false
    const commands = z.safeParse(Commands, availableCommands)
    if (commands.success) this.choices = { ...this.choices, commands: commands.data }
    return true
  }

  async #initialize(): Promise<void> {
    const { write = true, terminal = true } = this.#options
    const clientCapabilities = { fs: { readTextFile: true, writeTextFile: write }, terminal }
    const request = { protocolVersion: 1, clientCapabilities, clientInfo: { name: 'uamp', version: '1.0' } }
    const answer = await this.#within(this.process.request('initialize', request))
    const { protocolVersion, agentCapabilities } = Initialized.parse(answer)
    if (protocolVersion !== 1)
      throw new UampError('version_mismatch', `"${this.#options.name}" speaks ACP ${protocolVersion}, and here it is 1`)
    const { image, audio, embeddedContext } = agentCapabilities?.promptCapabilities ?? {}
    this.accepts = { image: image ?? false, audio: audio ?? false, embeddedContext: embeddedContext ?? false }
    this.#loads = agentCapabilities?.loadSession ?? false
  }

  #note(id: string, { modes, configOptions }: z.infer<typeof Opened>): void {
    const options = (configOptions ?? []).flatMap((option) => z.safeParse(Select, option).data ?? [])
    const model = options.find(({ category }) => category === 'model')
    this.#modelOption = model?.id
    const models = model?.options?.map(({ value, name }) => ({ id: value, ...(name !== undefined && { name }) }))
    this.choices = { ...this.choices, ...(modes && { modes: modes.availableModes }), ...(models && { models }) }
    this.#open.set(id, { mode: modes?.currentModeId, model: typeof model?.currentValue === 'string' ? model.currentValue : undefined })
  }

  async #told(method: string, params: unknown): Promise<void> {
    if (method !== 'session/update' || !isRecord(params)) return
    const { sessionId, update } = params
    if (typeof sessionId !== 'string' || !isRecord(update)) return
    await this.#events.onUpdate(sessionId, update)
  }

  async #asked(method: string, params: unknown): Promise<unknown> {
    const { write = true, terminal = true } = this.#options
    if (method === 'session/request_permission') return this.#permission(params)
    parse(OfSession, params)
    if (method === 'fs/read_text_file') {
      const { path, ...lines } = parse(Read, params)
      return { content: await this.#folder.read(path, lines) }
    }
    if (method === 'fs/write_text_file' && write) {
      const { path, content } = parse(Write, params)
      await this.#folder.write(path, content)
      return {}
    }
    if (method.startsWith('terminal/') && terminal) return this.#terminal(method, params)
    throw new RpcError(RPC.methodNotFound, `There is no method "${method}"`)
  }

  async #terminal(method: string, params: unknown): Promise<unknown> {
    if (method === 'terminal/create') return { terminalId: await this.#terminals.create(parse(Create, params) as Command) }
    const { terminalId } = parse(Terminal, params)
    switch (method) {
      case 'terminal/output':
        return this.#terminals.find(terminalId).shown
      case 'terminal/wait_for_exit':
        return this.#terminals.find(terminalId).exit
      case 'terminal/kill':
        this.#terminals.find(terminalId).kill()
        return {}
      case 'terminal/release':
        this.#terminals.release(terminalId)
        return {}
      default:
        throw new RpcError(RPC.methodNotFound, `There is no method "${method}"`)
    }
  }

  #permission(params: unknown): Promise<Slot> {
    const { sessionId, toolCall, options } = parse(Permission, params)
    return new Promise((resolve) => {
      const answer = (result: Slot | undefined): void => resolve(result ?? { outcome: { outcome: 'cancelled' } })
      this.#events.onPermission(sessionId, { toolCall, options, answer })
    })
  }

  /** It must answer in time. */
  async #within<T>(answer: Promise<T>): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new UampError('timeout', `"${this.#options.name}" did not answer within ${START_MS} ms`)), START_MS)
    })
    try {
      return await Promise.race([answer, late])
    } finally {
      clearTimeout(timer)
    }
  }
}

function has(choices: unknown, id: string): boolean {
  return Array.isArray(choices) && choices.some((choice) => isRecord(choice) && choice['id'] === id)
}

function parse<T extends z.ZodMiniType>(schema: T, value: unknown): z.output<T> {
  const result = z.safeParse(schema, value)
  if (result.success) return result.data
  throw new RpcError(RPC.invalidParams, `"${result.error.issues[0]?.path.join('.')}" is not in its form`)
}
