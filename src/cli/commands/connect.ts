import { retire, type AssembleContext } from '../../config/assemble.ts'
import { Modules } from '../../config/modules.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ConnectedAgents } from '../../serve/connect/index.ts'
import { serverLog, type LogFormat, type LogLevel } from '../../server/node/log.ts'
import { present } from '../../wire/fields.ts'
import { connectionsOf, type Connection } from '../connections.ts'
import { servedModels } from '../models/served.ts'
import { openOwn } from '../own-data.ts'
import { report } from '../print.ts'
import { loadSetup, type Setup } from '../setup.ts'
import { onOrphaned, onSignal, STOP } from '../signals.ts'
import { secretOf } from '../tokens.ts'

export interface ConnectFlags {
  readonly agent?: readonly string[]
  readonly token?: string
  readonly tokenFile?: string
  readonly data?: string
  readonly logLevel?: LogLevel
  readonly logFormat?: LogFormat
}

/** Offers agents through other servers, until a signal comes or other processes have taken over all of them. */
export async function connect(given: readonly string[], flags: ConnectFlags): Promise<number> {
  const { env, stdout } = process
  const { url, file } = argumentsIn(given)
  const { log, set } = serverLog(present({ level: flags.logLevel ?? 'warn', format: flags.logFormat }))
  const context: AssembleContext = { env, modules: new Modules(), log }
  const setup = await loadSetup(file, context)
  set(present({ level: flags.logLevel ?? setup.settings.log?.level, format: flags.logFormat ?? setup.settings.log?.format }))
  const places = placesOf(setup, { url, flags, env })
  const data = flags.data || env['UAMP_DATA'] || 'memory'
  const tell = (text: string): void => report(new Error(text))
  const models = await servedModels(env, tell)
  const [{ gateway: open }, { connectOpen }] = await Promise.all([
    openOwn({ agents: setup.agents, data, log, models, tell }),
    import('../../serve/connect/index.ts'),
  ])
  const stop = stopper()
  const connected: ConnectedAgents[] = []
  try {
    for (const { url: host, agents: names, token } of places) {
      stdout.write(`Connecting to ${shown(host)}\n`)
      const next = await Promise.race([stop.asked, connectOpen(host, { open, names, token, onStatus: status(host) })])
      if (!next) return 0
      connected.push(next)
      stdout.write(names.map((name) => `${name} is at ${agentUrl(host, name)}\n`).join(''))
    }
    await Promise.race([stop.asked, Promise.all(connected.map(({ closed }) => closed))])
    const isAsked = stop.isAsked
    if (isAsked) stdout.write('\nLeaving: running answers are being finished; again to stop at once\n')
    await Promise.all(connected.map((each) => each.close()))
    if (!isAsked) tell('Other processes host all agents now')
    return isAsked ? 0 : 1
  } finally {
    await open.close(0)
    await retire(setup.assembly)
  }
}

/** The address of the host may be left out if the config has some. */
function argumentsIn([first, second]: readonly string[]): { url: string | undefined; file: string | undefined } {
  if (first !== undefined && /^(wss?|https?):\/\//i.test(first)) return { url: first, file: second }
  if (second === undefined) return { url: undefined, file: first }
  throw new UampError('invalid_request', `Write the address of the host first, and then the file: uamp connect ${second} ${first}`)
}

interface Given {
  readonly url: string | undefined
  readonly flags: ConnectFlags
  readonly env: NodeJS.ProcessEnv
}

function placesOf({ agents, settings }: Setup, { url, flags, env }: Given): readonly Connection[] {
  const names = flags.agent ?? agents.map(({ name }) => name)
  const unknown = names.find((name) => !agents.some((agent) => agent.name === name))
  if (unknown !== undefined) {
    const choice = agents.map(({ name }) => `--agent ${name}`).join(', ')
    throw new UampError('invalid_request', `There is no agent "${unknown}". Choose one: ${choice}`)
  }
  if (url !== undefined) {
    // Refuses a file that cannot be read now, and reads it again whenever a token is needed.
    secretOf(flags, env)
    return [{ url, agents: names, token: () => secretOf(flags, env) ?? '' }]
  }
  const places = connectionsOf(settings.connect ?? [], { env, agents: names })
  if (places.length > 0) return places
  throw new UampError('invalid_request', 'Name the host, as in `uamp connect wss://host/ws`, or put it into the config as `connect`')
}

function status(host: string) {
  let wasOffline = false
  return (now: 'online' | 'offline', why?: string): void => {
    if (now === 'offline' && !wasOffline) process.stderr.write(`Not connected to ${shown(host)}: ${why ?? ''}. Trying again\n`)
    if (now === 'online' && wasOffline) process.stderr.write(`Connected to ${shown(host)} again\n`)
    wasOffline = now === 'offline'
  }
}

/** Without a token that some hosts want in the address. */
function shown(url: string): string {
  const { protocol, host, pathname } = new URL(url)
  return `${protocol}//${host}${pathname}`
}

function agentUrl(url: string, name: string): string {
  const { protocol, host, pathname } = new URL(url)
  return `${protocol.replace(/^ws/, 'http')}//${host}${pathname.replace(/\/(ws|uamp)?\/?$/, '')}/agents/${name}`
}

/** The first signal asks to leave, the second one ends the process. */
function stopper() {
  let ask: () => void = () => undefined
  const stop = { isAsked: false, asked: new Promise<undefined>((resolve) => (ask = () => resolve(undefined))) }
  const heard = (): void => {
    if (stop.isAsked) process.exit(0)
    stop.isAsked = true
    ask()
  }
  onOrphaned(process.env, heard)
  onSignal(STOP, heard)
  return stop
}
