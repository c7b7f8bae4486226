import { realpath } from 'node:fs/promises'
import * as z from 'zod/mini'
import { UampError } from '../../protocol/errors.ts'
import { fieldsOf, isRecord, type Slot } from '../../protocol/json.ts'
import type { Accepts } from '../../wire/acp/blocks.ts'
import { RPC, RpcError } from '../../wire/json-rpc.ts'
import { Folder } from './folder.ts'
import type { RemoteAcpOptions } from './index.ts'
import { CANCELLED, Permission } from './permission.ts'
import { AcpProcess } from './process.ts'
import { service, servicesOf } from './services.ts'
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
  /** Those that are open in this run. */
  readonly #sessions = new Map<string, Session>()
  #loads = false

  private constructor(options: RemoteAcpOptions, folder: Folder) {
    this.#name = options.name
    this.#folder = folder
    this.#terminals = new Terminals(folder)
    const permission = service(Permission, (asked) => this.#sessions.get(asked.sessionId)?.permission(asked) ?? CANCELLED)
    const services = servicesOf(options, folder, this.#terminals).set('session/request_permission', permission)
    this.#process = new AcpProcess(options, folder.root, {
      onRequest: async (method, params) => {
        const asked = services.get(method)
        if (!asked) throw new RpcError(RPC.methodNotFound, `There is no method "${method}"`)
        return (await asked(params)) ?? {}
      },
      onNotification: (method, params) => this.#told(method, params),
    })
    void this.ended.then(() => this.#terminals.close())
  }

  static async start(options: RemoteAcpOptions): Promise<Live> {
    const { name, write = true, terminal = true } = options
    const root = await realpath(options.folder).catch(() => {
      throw new UampError('agent_offline', `The folder ${options.folder} of "${name}" is not there`)
    })
    const live = new Live(options, new Folder(root))
    try {
      await live.#initialize({ fs: { readTextFile: true, writeTextFile: write }, terminal })
      return live
    } catch (thrown) {
      await live.stop()
      if (thrown instanceof UampError) throw thrown
      throw new UampError('provider_error', `"${name}" does not speak ACP: ${(thrown as Error).message}`)
    }
  }

  get ended(): Promise<unknown> {
    return this.#process.ended
  }

  async stop(): Promise<void> {
    this.#terminals.close()
    await this.#process.stop()
  }

  async open(): Promise<Session> {
    const opened = Opened.parse(await this.#process.ask('session/new', { cwd: this.#folder.root, mcpServers: [] }))
    if (opened.sessionId === undefined) throw new UampError('provider_error', `"${this.#name}" opened no session`)
    return this.#session(opened.sessionId, opened)
  }

  /** A session of before, if it can be gone on with: it is open and free, or can be loaded. */
  async take(id: string): Promise<Session | undefined> {
    const session = this.#sessions.get(id)
    if (session) return (await session.take()) ? session : undefined
    if (!this.#loads) return undefined
    try {
      const loaded = await this.#process.ask('session/load', { sessionId: id, cwd: this.#folder.root, mcpServers: [] })
      return this.#session(id, Opened.parse(loaded ?? {}))
    } catch (thrown) {
      if (thrown instanceof RpcError) return undefined
      throw thrown
    }
  }

  async #initialize(clientCapabilities: object): Promise<void> {
    const clientInfo = { name: 'uamp', version: '1.0' }
    const answer = await this.#process.ask('initialize', { protocolVersion: 1, clientCapabilities, clientInfo })
    const { protocolVersion, agentCapabilities } = Initialized.parse(answer)
    if (protocolVersion !== 1) throw new UampError('version_mismatch', `"${this.#name}" speaks ACP ${protocolVersion}, and here it is 1`)
    const { image, audio, embeddedContext } = agentCapabilities?.promptCapabilities ?? {}
    this.accepts = { image: image ?? false, audio: audio ?? false, embeddedContext: embeddedContext ?? false }
    this.#loads = agentCapabilities?.loadSession ?? false
  }

  #session(id: string, { modes, configOptions }: z.infer<typeof Opened>): Session {
    const selects = (configOptions ?? []).flatMap((option) => z.safeParse(Select, option).data ?? [])
    const select = selects.find(({ category }) => category === 'model')
    const models = select?.options.map(({ value: model, name }) => ({ id: model, ...(name !== undefined && { name }) }))
    this.choices = { ...this.choices, ...(modes && { modes: modes.availableModes }), ...(models && { models }) }
    const session = new Session(id, this.#process, {
      mode: setting(modes?.currentModeId, modes?.availableModes, (modeId) => ['session/set_mode', { modeId }]),
      model: setting(select?.currentValue, models, (value) => ['session/set_config_option', { configId: select?.id, value }]),
    })
    this.#sessions.set(id, session)
    return session
  }

  async #told(method: string, params: unknown): Promise<void> {
    const { sessionId, update } = fieldsOf(params)
    if (method !== 'session/update' || typeof sessionId !== 'string' || !isRecord(update)) return
    if (update['sessionUpdate'] === COMMANDS) {
      const { data: commands } = z.safeParse(Commands, update['availableCommands'])
      if (commands) this.choices = { ...this.choices, commands }
    }
    await this.#sessions.get(sessionId)?.update(update)
  }
}

type Choices = readonly { readonly id: string }[] | undefined

function setting(current: Setting['current'], choices: Choices, request: Setting['request']): Setting {
  return { current, values: choices?.map(({ id }) => id) ?? [], request }
}
