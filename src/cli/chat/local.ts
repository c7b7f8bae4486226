import { retire, type AssembleContext } from '../../config/assemble.ts'
import { Modules } from '../../config/modules.ts'
import type { Logger } from '../../core/ports/transport.ts'
import { servedModels } from '../models/served.ts'
import { openOwn } from '../own-data.ts'
import { agentIn, loadSetup, remoteSetup } from '../setup.ts'
import type { Target } from './target.ts'

/** An agent in this process, which a client reaches as if it were on a server. */
export interface Local {
  readonly agent: string
  readonly agents: readonly string[]
  /** Sessions are on disk. */
  readonly keeps: boolean
  /** The folder to name with `--data`, to find them there again. */
  readonly folder: string | undefined
  readonly fetch: typeof globalThis.fetch
  close(): Promise<void>
}

export interface LocalOptions {
  readonly target: Exclude<Target, { kind: 'server' }>
  readonly agent: string | undefined
  /** The data folder, or `memory`. */
  readonly data: string | undefined
  readonly home: string
  readonly env: NodeJS.ProcessEnv
  readonly log: Logger
  readonly tell: (text: string) => void
}

const GRACE_MS = 1_000

/** Loads agents, and serves them to this process alone: no port is opened. */
export async function openLocal({ target, agent: wanted, data, home, env, log, tell }: LocalOptions): Promise<Local> {
  const context: AssembleContext = { env, modules: new Modules(), log }
  // Most of the time until the prompt is spent on loading code, so the agent and the server are loaded together.
  const [setup, { createApp }, { events }, { responses }, { staticTokens }] = await Promise.all([
    target.kind === 'file' ? loadSetup(target.path, context) : remoteSetup({ ...target, option: 'uamp chat' }, context),
    import('../../server/app.ts'),
    import('../../transports/events/index.ts'),
    import('../../transports/responses/index.ts'),
    import('../../auth/static-tokens.ts'),
  ])
  try {
    const agent = agentIn(setup, target.kind === 'file' ? wanted : undefined)
    const place = data ?? setup.settings.data ?? home
    const models = await servedModels(env, tell)
    const { gateway, folder } = await openOwn({ agents: setup.agents, data: place, log, models, tell })
    const access = staticTokens({ tokens: {}, anonymous: true })
    const app = createApp({ ...gateway, transports: [events(), responses()], access, loopback: true })
    return {
      agent,
      agents: setup.agents.map(({ name }) => name),
      keeps: folder !== undefined,
      folder: data !== undefined || folder !== place ? folder : undefined,
      fetch: async (input, init) => app.fetch(new Request(input, init), {}),
      async close() {
        await gateway.close(GRACE_MS)
        await retire(setup.assembly)
      },
    }
  } catch (thrown) {
    await retire(setup.assembly)
    throw thrown
  }
}
