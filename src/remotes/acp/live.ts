import { realpath } from 'node:fs/promises'
import * as z from 'zod/mini'
import { UampError } from '../../protocol/errors.ts'
import { FIRST_EXPLAINED } from '../../protocol/explain.ts'
import { fieldsOf, isRecord, type Slot } from '../../protocol/json.ts'
import type { Accepts } from '../../wire/acp/blocks.ts'
import { RPC, RpcError } from '../../wire/json-rpc.ts'
import { parseParams } from '../../wire/rpc-params.ts'
import { Folder } from './folder.ts'
import type { RemoteAcpOptions } from './index.ts'
import type { Inbox } from './inbox.ts'
import { CANCELLED, Permission } from './permission.ts'
import { AcpProcess, Unheard } from './process.ts'
import { servicesOf } from './services.ts'
import { Session, type Setting } from './session.ts'
import { Terminals } from './terminals.ts'

const text = z.nullish(z.string())
const flag = z.nullish(z.boolean())
const Initialized = z.object({
  protocolVersion: z.number(),
  agentCapabilities: z.nullish(
    z.object({ loadSession: flag, promptCapabilities: z.nullish(z.object({ image: flag, audio: flag, embeddedContext: flag })) }),
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

/** An update that is about the agent and not about the answer. */
export const COMMANDS = 'available_commands_update'

/** One run of the program: what it can do, its sessions, and what it asks of us. */
export class Live {
  accepts: Accepts = { image: false, audio: false, embeddedContext: false }
  /** As our clients are told them: `extensions.uamp` of the capabilities. */
  choices: Slot = {}
  readonly #name: string
  readonly #process: AcpProcess
  readonly #folder: Folder
  readonly #terminals: Terminals
  /** Of the turns that listen, by the ids of their sessions. */
  readonly #inboxes = new Map<string, Inbox>()
  #loads = false

  private constructor(options: RemoteAcpOptions, folder: Folder) {
    this.#name = options.name
    this.#folder = folder
    this.#terminals = new Terminals(folder)
    const services = servicesOf(options, folder, this.#terminals)
    this.#process = new AcpProcess(options, folder.root, {
      onRequest: async (method, params, bytes) => {
        if (method === 'session/request_permission') return this.#permission(parseParams(Permission, params), bytes)
        const asked = services.get(method)
        if (!asked) throw new RpcError(RPC.methodNotFound, `There is no method "${method}"`)
        return (await asked(params)) ?? {}
      },
      onNotification: (method, params, bytes) => this.#told(method, params, bytes),
    })
    void this.ended.then(() => this.#terminals.close())
  }

  /** Aborted, it is stopped, whatever it does then. */
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
      // It did not even listen: why it ended says more.
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

  async open(signal: AbortSignal): Promise<Session> {
    const answer = await this.#process.ask('session/new', { cwd: this.#folder.root, mcpServers: [] }, signal)
    const opened = this.#parse(Opened, 'session/new', answer)
    if (opened.sessionId === undefined) throw new UampError('provider_error', `"${this.#name}" opened no session`)
    return this.#session(opened.sessionId, opened)
  }

  /** A session of before, if it can be gone on with: it is open and free, or can be loaded. */
  async take(session: Session, signal: AbortSignal): Promise<Session | undefined> {
    if (session.process === this.#process) return (await session.free(signal)) ? session : undefined
    if (!this.#loads) return undefined
    try {
      const asked = { sessionId: session.id, cwd: this.#folder.root, mcpServers: [] }
      const loaded = this.#session(session.id, this.#parse(Opened, 'session/load', await this.#process.ask('session/load', asked, signal)))
      loaded.cost = session.cost
      return loaded
    } catch (thrown) {
      if (thrown instanceof RpcError) return undefined
      throw thrown
    }
  }

  async #initialize(clientCapabilities: object, signal: AbortSignal): Promise<void> {
    const clientInfo = { name: 'uamp', version: '1.0' }
    const asked = { protocolVersion: 1, clientCapabilities, clientInfo }
    const answer = await this.#process.ask('initialize', asked, signal)
    const { protocolVersion, agentCapabilities } = this.#parse(Initialized, 'initialize', answer)
    if (protocolVersion !== 1) throw new UampError('version_mismatch', `"${this.#name}" speaks ACP ${protocolVersion}, and here it is 1`)
    const { image, audio, embeddedContext } = agentCapabilities?.promptCapabilities ?? {}
    this.accepts = { image: image ?? false, audio: audio ?? false, embeddedContext: embeddedContext ?? false }
    this.#loads = agentCapabilities?.loadSession ?? false
  }
  #parse<T extends z.ZodMiniType>(schema: T, method: string, answer: unknown): z.output<T> {
    const { success, data } = z.safeParse(schema, answer ?? {}, FIRST_EXPLAINED)
    if (success) return data
    throw new UampError('provider_error', `"${this.#name}" answered "${method}" with something that is no ACP`)
  }

  #session(id: string, { modes, configOptions }: z.infer<typeof Opened>): Session {
    const selects = (configOptions ?? []).flatMap((option) => z.safeParse(Select, option, FIRST_EXPLAINED).data ?? [])
    const select = selects.find(({ category }) => category === 'model')
    const models = select?.options.map(({ value: model, name }) => ({ id: model, ...(name !== undefined && { name }) }))
    this.choices = { ...this.choices, ...(modes && { modes: modes.availableModes }), ...(models && { models }) }
    const settings = {
      mode: setting(modes?.currentModeId, modes?.availableModes, (modeId) => ['session/set_mode', { modeId }]),
      model: setting(select?.currentValue, models, (value) => ['session/set_config_option', { configId: select?.id, value }]),
    }
    return new Session({ id, process: this.#process, settings, inboxes: this.#inboxes })
  }

  #told(method: string, params: unknown, bytes: number): void {
    const { sessionId, update } = fieldsOf(params)
    if (method !== 'session/update' || typeof sessionId !== 'string' || !isRecord(update)) return
    if (update['sessionUpdate'] === COMMANDS) {
      const { data: commands } = z.safeParse(Commands, update['availableCommands'], FIRST_EXPLAINED)
      if (commands) this.choices = { ...this.choices, commands }
    }
    this.#inboxes.get(sessionId)?.add({ update }, bytes)
  }

  async #permission(permission: Permission, bytes: number): Promise<Slot> {
    return this.#inboxes.get(permission.sessionId)?.ask(permission, bytes) ?? CANCELLED
  }
}

type Choices = readonly { readonly id: string }[] | undefined

function setting(current: Setting['current'], choices: Choices, request: Setting['request']): Setting {
  return { current, values: choices?.map(({ id }) => id) ?? [], request }
}
