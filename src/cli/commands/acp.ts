import { homedir } from 'node:os'
import { join } from 'node:path'
import { UampError } from '../../protocol/errors.ts'
import { pinoLog } from '../../server/node/log.ts'
import { retire, type AssembleContext } from '../../config/assemble.ts'
import { Modules } from '../../config/modules.ts'
import { servedModels } from '../models/served.ts'
import { report } from '../print.ts'
import { openOwn } from '../own-data.ts'
import { agentIn, loadSetup, remoteSetup, type Setup } from '../setup.ts'
import { onSignal, STOP } from '../signals.ts'
import { secretOf } from '../tokens.ts'
import type { Output } from '../../serve/acp-stdio.ts'
import { fieldsOf } from '../../protocol/json.ts'
import type { RemoteEventsAgent } from '../../remotes/events/index.ts'
import { present } from '../../wire/fields.ts'

export interface AcpFlags {
  readonly agent?: string
  readonly url?: string
  readonly protocol?: string
  readonly model?: string
  readonly token?: string
  readonly tokenFile?: string
  readonly data?: string
}

/** Serves an agent to the IDE that started this process: ACP on standard input and output, until the input ends. */
export async function acp(file: string | undefined, { version, ...flags }: AcpFlags & { readonly version: string }): Promise<number> {
  const output = takeStdout()
  const { env, stdin: input } = process
  onSignal(STOP, () => void input.destroy())
  const { url } = flags
  const token = secretOf(flags, env)
  const log = pinoLog({ level: env['UAMP_DEBUG'] === '1' ? 'debug' : 'warn' })
  if (url !== undefined && /^wss?:/.test(url)) {
    const { relay } = await import('../acp-relay.ts')
    return relay({ url, token, input, output, log })
  }
  const context: AssembleContext = { env, modules: new Modules(), log }
  const setup = await (url === undefined
    ? loadSetup(file, context)
    : remoteSetup({ remote: remoteOf({ ...flags, url }, token), option: '--url' }, context))
  try {
    const agent = agentIn(setup, url === undefined ? flags.agent : undefined, 'acp')
    if (url !== undefined) await learn(setup)
    const data = flags.data || env['UAMP_DATA'] || setup.settings.data || join(homedir(), '.uamp')
    const tell = (text: string): void => report(new Error(text))
    const models = await servedModels(env, tell)
    const { gateway: open } = await openOwn({ agents: setup.agents, data, log, models, tell })
    const { acpOverStdio } = await import('../../serve/acp-stdio.ts')
    await acpOverStdio({ open, agent, version, input, output })
    return 0
  } finally {
    await retire(setup.assembly)
  }
}

function remoteOf({ url = '', agent, protocol: named, model }: AcpFlags, token: string | undefined): Readonly<Record<string, unknown>> {
  // An address such as `a2a+https://…` names its protocol itself.
  const protocol = named ?? (/^https?:/.test(url) ? 'events' : undefined)
  return present({ url, protocol, model, token, agent: protocol === undefined || protocol === 'events' ? agent : undefined })
}

/** Refusals that tell the user which flag is wrong. */
const MISTAKES = new Map<unknown, string>([
  [400, 'check --url and --agent'],
  [401, 'check --token'],
  [403, 'this token may not use it'],
  [404, 'check --url and --agent'],
])

/**
 * Asks a uamp server what its agent can do before the IDE opens a session, because IDEs show modes and commands from its beginning.
 * A server that cannot be reached now may be there for the first prompt.
 */
async function learn({ agents }: Setup): Promise<void> {
  const { fetchHttp } = await import('../../core/http/fetch-http.ts')
  for (const agent of agents) {
    if (!('learn' in agent)) continue
    try {
      await (agent as RemoteEventsAgent).learn({ http: fetchHttp(), signal: new AbortController().signal })
    } catch (thrown) {
      const { code, message, details } = UampError.from(thrown)
      const advice = MISTAKES.get(fieldsOf(details)['status'])
      if (advice !== undefined) throw new UampError(code, `${message}: ${advice}`)
      report(new Error(`${message}. It is asked again with the first prompt`))
    }
  }
}

/**
 * Takes standard output for one writer. Other output would break the protocol, and goes to standard error. Code that writes to the file
 * descriptor itself cannot be stopped.
 */
function takeStdout(): Output {
  const { stdout, stderr } = process
  const write = stdout.write.bind(stdout)
  stdout.write = stderr.write.bind(stderr)
  const waiting: (() => void)[] = []
  const release = (): void => {
    for (const resolve of waiting.splice(0)) resolve()
  }
  // An error means that nobody reads any more. The end of the input follows.
  for (const event of ['drain', 'close', 'error']) stdout.on(event, release)
  return {
    write: (text) => !stdout.writable || write(text),
    drained: () => new Promise((resolve) => (stdout.writableNeedDrain ? waiting.push(resolve) : resolve())),
  }
}
