import { homedir } from 'node:os'
import { join } from 'node:path'
import { agentAtRoot } from '../../core/edge/asked.ts'
import { UampError } from '../../protocol/errors.ts'
import { pinoLog } from '../../server/node/log.ts'
import { assemble, retire, type AssembleContext, type Assembly } from '../../config/assemble.ts'
import { Modules } from '../../config/modules.ts'
import type { Source } from '../../config/source.ts'
import { report } from '../print.ts'
import { loadSetup, type Setup } from '../setup.ts'
import { onSignal, STOP } from '../signals.ts'
import { secretOf } from '../tokens.ts'
import type { Output } from '../../serve/acp-stdio.ts'
import type { OpenGateway, OpenGatewayOptions } from '../../serve/gateway.ts'
import { WINDOWS, windowsOf } from '../../serve/windows.ts'
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
    : remoteSetup(url, { ...flags, ...(token !== undefined && { token }) }, context))
  try {
    const agent = agentOf(setup, url === undefined ? flags.agent : undefined)
    if (url !== undefined) await learn(setup)
    const data = flags.data || env['UAMP_DATA'] || setup.settings.data || join(homedir(), '.uamp')
    const open = await openOwn({ agents: setup.agents, data, log })
    const { acpOverStdio } = await import('../../serve/acp-stdio.ts')
    await acpOverStdio({ open, agent, version, input, output })
    return 0
  } finally {
    await retire(setup.reload?.assembly)
  }
}

/** A remote agent, as a config would name it. */
async function remoteSetup(url: string, { agent, protocol, model, token }: AcpFlags, context: AssembleContext): Promise<Setup> {
  const remote = present({ url, protocol, model, token, agent: protocol === undefined || protocol === 'events' ? agent : undefined })
  const source: Source = { file: '--url', value: { agents: [{ name: 'remote', remote }] }, lineOf: () => undefined }
  const again = (before?: Assembly) => assemble(source, context, before)
  const assembly = await again()
  return { agents: assembly.agents, settings: {}, notes: [], reload: { assembly, again } }
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

function agentOf({ agents, settings }: Setup, wanted: string | undefined): string {
  const names = agents.map(({ name }) => name)
  const name = wanted ?? agentAtRoot(names, settings.defaultAgent)
  if (name !== undefined && names.includes(name)) return name
  const choice = names.map((each) => `--agent ${each}`).join(', ')
  throw new UampError('invalid_request', `${name === undefined ? 'Choose an agent' : `There is no agent "${name}". Choose one`}: ${choice}`)
}

/**
 * One process owns a data folder. An IDE with two windows starts two processes: the second one uses a folder of its own in it, so that
 * neither needs the other. Where no folder can be used, sessions are not kept.
 */
async function openOwn({ data, ...options }: OpenGatewayOptions) {
  const { openGateway } = await import('../../serve/gateway.ts')
  try {
    if (data !== 'memory') return await openWindow(data, options)
  } catch (thrown) {
    report(new Error(`Sessions are not kept: ${textOf(thrown)}`))
  }
  return openGateway({ ...options, data: 'memory' })
}

/** Opens the first folder that no other process uses. A damaged folder of another window is no reason to keep nothing in this one. */
async function openWindow(data: string, options: Omit<OpenGatewayOptions, 'data'>): Promise<OpenGateway> {
  const { isInUse } = await import('../../stores/sqlite-schema.ts')
  for (const own of windowsOf(data)) {
    try {
      const open = await openIn(own, options)
      if (own !== data) report(new Error(`Another process uses ${data}: the sessions of this window are kept in ${own}`))
      return open
    } catch (thrown) {
      if (isInUse(thrown)) continue
      if (own === data) throw thrown
      report(new Error(`${own} is skipped: ${textOf(thrown)}`))
    }
  }
  const all = `${data} has room for ${WINDOWS} windows at a time, and none of its folders is free`
  throw new UampError('overloaded', `${all}: close a window, or choose another folder with --data`)
}

async function openIn(data: string, options: Omit<OpenGatewayOptions, 'data'>): Promise<OpenGateway> {
  const [{ checkData }, { openGateway }] = await Promise.all([import('../../serve/data.ts'), import('../../serve/gateway.ts')])
  await checkData(data)
  const open = openGateway({ ...options, data })
  try {
    await open.started
    return open
  } catch (thrown) {
    await open.close(0)
    throw thrown
  }
}

function textOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
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
