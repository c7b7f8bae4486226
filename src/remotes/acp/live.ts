import { realpath } from 'node:fs/promises'
import * as z from 'zod/mini'
import { UampError } from '../../protocol/errors.ts'
import { FIRST_EXPLAINED } from '../../protocol/explain.ts'
import { fieldsOf, isRecord, type Slot } from '../../protocol/json.ts'
import type { ToolDefinition } from '../../protocol/tools.ts'
import type { Accepts } from '../../wire/acp/blocks.ts'
import { parseParams, RPC, RpcError } from '../../wire/json-rpc.ts'
import { passOn } from './editor.ts'
import { Folder, Read, Write } from './folder.ts'
import type { RemoteAcpOptions } from './index.ts'
import { CANCELLED, Permission } from './permission.ts'
import { AcpProcess, Unheard } from './process.ts'
import { Session, type Inbox, type Setting } from './session.ts'
import { Command, OfTerminal, Terminals } from './terminals.ts'
import { ToolServer, type Door } from './tool-server.ts'

const text = z.nullish(z.string())
const flag = z.nullish(z.boolean())
const Initialized = z.object({
  protocolVersion: z.number(),
  agentCapabilities: z.nullish(
    z.object({
      loadSession: flag,
      promptCapabilities: z.nullish(z.object({ image: flag, audio: flag, embeddedContext: flag })),
      mcpCapabilities: z.nullish(z.object({ http: flag })),
    }),
  ),
})
const Select = z.object({
  id: z.string(),
  category: text,
  currentValue: text,
  options: z._default(z.array(z.object({ value: z.string(), name: z.optional(z.string()) })), []),
})
const Opened = z.object({
  sessionId: z.optional(z.string()),
  modes: z.nullish(z.object({ currentModeId: z.string(), availableModes: z.array(z.object({ id: z.string(), name: z.string() })) })),
  configOptions: z.nullish(z.array(z.unknown())),
})
const Commands = z.array(z.object({ name: z.string(), description: z.optional(z.string()) }))

/** An update about the agent, not about the answer. */
export const COMMANDS = 'available_commands_update'

type Service = (params: unknown) => unknown

/** One run of the program: its abilities, its sessions, and its requests to us. */
export class Live {
  accepts: Accepts = { image: false, audio: false, embeddedContext: false }
  /** Modes, models and commands, as our clients see them in `extensions.uamp` of the capabilities. */
  choices: Slot = {}
  readonly #name: string
  readonly #process: AcpProcess
  readonly #folder: Folder
  readonly #terminals: Terminals
  /** The inboxes of running turns, by the ids of their sessions. */
  readonly #inboxes = new Map<string, Inbox>()
  #loads = false
  #mcpOverHttp = false
  #tools: Promise<ToolServer> | undefined

  private constructor(options: RemoteAcpOptions, folder: Folder) {
    this.#name = options.name
    this.#folder = folder
    this.#terminals = new Terminals(folder)
    const services = servicesOf(options, folder, this.#terminals)
    this.#process = new AcpProcess(options, folder.root, {
      onRequest: async (method, params, bytes) => {
        if (method === 'session/request_permission') return this.#permission(parseParams(Permission, params), bytes)
        const asked = services.get(method)
        const passed = asked && passOn({ method, params }, this.#inboxOf(params), folder)
        if (passed) return passed
        if (!asked) throw new RpcError(RPC.methodNotFound, `There is no method "${method}"`)
        return (await asked(params)) ?? {}
      },
      onNotification: (method, params, bytes) => this.#told(method, params, bytes),
    })
    void this.ended.then(async () => {
      this.#terminals.close()
      const tools = await this.#tools?.catch(() => undefined)
      tools?.close()
    })
  }

  /** An abort stops the program. */
  static async start(options: RemoteAcpOptions, signal: AbortSignal): Promise<Live> {
    const { name, write = true, terminal = true } = options
    const root = await realpath(options.folder).catch(() => {
      throw new UampError('agent_offline', `The folder ${options.folder} of "${name}" is not there`)
    })
    signal.throwIfAborted()
    const live = new Live(options, new Folder(root))
    try {
      await live.#initialize({ fs: { readTextFile: true, writeTextFile: write }, terminal }, signal)
      return live
    } catch (thrown) {
      await live.stop()
      // The program read nothing: the reason why it ended says more.
      const reason = thrown instanceof Unheard ? await live.ended : thrown
      if (reason instanceof UampError) throw reason
      throw new UampError('provider_error', `"${name}" does not speak ACP: ${(reason as Error).message}`)
    }
  }

  get ended(): Promise<Error> {
    return this.#process.ended
  }

  async stop(): Promise<void> {
    this.#terminals.close()
    await this.#process.stop()
  }

  /** A new session, which can call these tools. */
  async open(tools: readonly ToolDefinition[], { signal, hops }: Asking): Promise<Session> {
    return this.#equipped(tools, async (door) => {
      const answer = await this.#process.ask('session/new', this.#setup(door, hops), signal)
      const opened = this.#parse(Opened, 'session/new', answer)
      if (opened.sessionId === undefined) throw new UampError('provider_error', `"${this.#name}" opened no session`)
      return this.#session(opened.sessionId, opened, door)
    })
  }

  /** An earlier session, if it can be continued with these tools: it is open and free, or can be loaded. */
  async take(session: Session, tools: readonly ToolDefinition[], { signal, hops }: Asking): Promise<Session | undefined> {
    if (session.process === this.#process) return session.equip(tools) && (await session.free(signal)) ? session : undefined
    if (!this.#loads) return undefined
    try {
      return await this.#equipped(tools, async (door) => {
        const answer = await this.#process.ask('session/load', { sessionId: session.id, ...this.#setup(door, hops) }, signal)
        const loaded = this.#session(session.id, this.#parse(Opened, 'session/load', answer), door)
        loaded.cost = session.cost
        return loaded
      })
    } catch (thrown) {
      if (thrown instanceof RpcError) return undefined
      throw thrown
    }
  }

  /** Opens a session with a door to these tools, if there are any. The door is closed if that fails. */
  async #equipped(tools: readonly ToolDefinition[], open: (door: Door | undefined) => Promise<Session>): Promise<Session> {
    const server = tools.length === 0 ? undefined : await (this.#tools ??= ToolServer.open())
    const door = server?.door(this.#mcpOverHttp)
    door?.offer(tools)
    try {
      return await open(door)
    } catch (thrown) {
      door?.close()
      throw thrown
    }
  }

  #setup(door: Door | undefined, hops: number): Slot {
    return { cwd: this.#folder.root, mcpServers: door ? [door.server] : [], _meta: { uamp: { hops } } }
  }

  async #initialize(clientCapabilities: object, signal: AbortSignal): Promise<void> {
    const clientInfo = { name: 'uamp', version: '1.0' }
    const asked = { protocolVersion: 1, clientCapabilities, clientInfo }
    const answer = await this.#process.ask('initialize', asked, signal)
    const { protocolVersion, agentCapabilities } = this.#parse(Initialized, 'initialize', answer)
    if (protocolVersion !== 1)
      throw new UampError('version_mismatch', `"${this.#name}" speaks ACP ${protocolVersion}; this server speaks ACP 1`)
    const { image, audio, embeddedContext } = agentCapabilities?.promptCapabilities ?? {}
    this.accepts = { image: image ?? false, audio: audio ?? false, embeddedContext: embeddedContext ?? false }
    this.#loads = agentCapabilities?.loadSession ?? false
    this.#mcpOverHttp = agentCapabilities?.mcpCapabilities?.http ?? false
  }

  #parse<T extends z.ZodMiniType>(schema: T, method: string, answer: unknown): z.output<T> {
    const { success, data } = z.safeParse(schema, answer ?? {}, FIRST_EXPLAINED)
    if (success) return data
    throw new UampError('provider_error', `"${this.#name}" answered "${method}" with something that is no ACP`)
  }

  #session(id: string, { modes, configOptions }: z.infer<typeof Opened>, door: Door | undefined): Session {
    const selects = (configOptions ?? []).flatMap((option) => z.safeParse(Select, option, FIRST_EXPLAINED).data ?? [])
    const select = selects.find(({ category }) => category === 'model')
    const models = select?.options.map(({ value: model, name }) => ({ id: model, ...(name !== undefined && { name }) }))
    this.choices = { ...this.choices, ...(modes && { modes: modes.availableModes }), ...(models && { models }) }
    const settings = {
      mode: setting(modes?.currentModeId, modes?.availableModes, (modeId) => ['session/set_mode', { modeId }]),
      model: setting(select?.currentValue, models, (value) => ['session/set_config_option', { configId: select?.id, value }]),
    }
    return new Session({ id, process: this.#process, settings, inboxes: this.#inboxes, door })
  }

  #told(method: string, params: unknown, bytes: number): void {
    const { sessionId, update } = fieldsOf(params)
    if (method !== 'session/update' || typeof sessionId !== 'string' || !isRecord(update)) return
    if (update['sessionUpdate'] === COMMANDS) {
      const { data: commands } = z.safeParse(Commands, update['availableCommands'], FIRST_EXPLAINED)
      if (commands) this.choices = { ...this.choices, commands }
    }
    const inbox = this.#inboxes.get(sessionId)
    inbox?.add({ update: inbox.editor.shown(update) }, bytes)
  }

  async #permission(permission: Permission, bytes: number): Promise<Slot> {
    const inbox = this.#inboxes.get(permission.sessionId)
    return inbox?.ask({ ...permission, toolCall: inbox.editor.shown(permission.toolCall) }, bytes) ?? CANCELLED
  }

  #inboxOf(params: unknown): Inbox | undefined {
    return this.#inboxes.get(String(fieldsOf(params)['sessionId']))
  }
}

/** A turn that asks. */
interface Asking {
  readonly signal: AbortSignal
  /** How often the turn was passed on, this time included. */
  readonly hops: number
}

type Choices = readonly { readonly id: string }[] | undefined

function setting(current: Setting['current'], choices: Choices, request: Setting['request']): Setting {
  return { current, values: choices?.map(({ id }) => id) ?? [], request }
}

/** A method that the agent may call, with parameters of this form. */
function service<T extends z.ZodMiniType>(schema: T, run: (params: z.output<T>) => unknown): Service {
  return (params) => run(parseParams(schema, params))
}

/** ACP, File System and Terminals: the methods that the operator allows. */
function servicesOf(options: RemoteAcpOptions, folder: Folder, terminals: Terminals): Map<string, Service> {
  const { write = true, terminal = true } = options
  const services = { 'fs/read_text_file': service(Read, async (asked) => ({ content: await folder.read(asked) })) }
  const writing = { 'fs/write_text_file': service(Write, (asked) => folder.write(asked)) }
  const running = {
    'terminal/create': service(Command, async (command) => ({ terminalId: await terminals.create(command) })),
    'terminal/output': service(OfTerminal, ({ terminalId }) => terminals.find(terminalId).shown),
    'terminal/wait_for_exit': service(OfTerminal, ({ terminalId }) => terminals.find(terminalId).exit),
    'terminal/kill': service(OfTerminal, ({ terminalId }) => terminals.find(terminalId).kill()),
    'terminal/release': service(OfTerminal, ({ terminalId }) => terminals.release(terminalId)),
  }
  return new Map(Object.entries({ ...services, ...(write && writing), ...(terminal && running) }))
}
