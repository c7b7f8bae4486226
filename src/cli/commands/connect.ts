import { existsSync } from 'node:fs'
import { retire, type AssembleContext } from '../../config/assemble.ts'
import { Modules } from '../../config/modules.ts'
import { UampError } from '../../protocol/errors.ts'
import { addressOf, isHostAndPort, serverPath } from '../../serve/connect/address.ts'
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
  // Before anything is opened: a token that cannot be read is told at once.
  const secrets = places.flatMap(({ agents, token }) => agents.map(token))
  const data = flags.data || env['UAMP_DATA'] || 'memory'
  const tell = (text: string): void => report(new Error(text))
  const models = await servedModels(env, tell)
  const [{ gateway: open }, { connectOpen }] = await Promise.all([
    openOwn({ agents: setup.agents, data, log, models, secrets, tell }),
    import('../../serve/connect/index.ts'),
  ])
  const stop = stopper()
  const connected: ConnectedAgents[] = []
  // All at once: a host that is away keeps no other waiting.
  const over = places.map(async ({ url: host, agents: names, token }) => {
    stdout.write(`Connecting to ${shown(host)}\n`)
    const joined = await connectOpen(host, { open, names, token, onStatus: status(host) })
    connected.push(joined)
    stdout.write(names.map((name) => `${name} is at ${agentUrl(host, name)}\n`).join(''))
    await joined.closed
  })
  try {
    await Promise.race([stop.asked, Promise.all(over)])
    const isAsked = stop.isAsked
    if (isAsked && connected.length > 0) stdout.write('\nLeaving: running answers are being finished; again to stop at once\n')
    await Promise.all(connected.map((each) => each.close()))
    if (!isAsked) tell('Other processes host all agents now')
    return isAsked ? 0 : 1
  } catch (thrown) {
    throw advised(thrown)
  } finally {
    await Promise.all(connected.map((each) => each.close({ graceMs: 0 })))
    await open.close(0)
    await retire(setup.assembly)
  }
}

/** The address of the host may be left out if the config has some. */
function argumentsIn([first, second]: readonly string[]): { url: string | undefined; file: string | undefined } {
  if (first !== undefined && first.includes('://')) return { url: addressOf(first), file: second }
  // What is there counts as a file, whatever it is called.
  const isAddress = first !== undefined && isHostAndPort(first) && !existsSync(first)
  if (isAddress || (second !== undefined && !second.includes('://'))) return { url: addressOf(first ?? ''), file: second }
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
  if (url !== undefined) return [{ url, agents: names, token: () => secretOf(flags, env) ?? '' }]
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

const ADVICE: ReadonlyMap<unknown, string> = new Map([
  ['unauthorized', 'Give the token of the agent at the host in $UAMP_TOKEN, with --token-file, or in the config'],
  [
    'forbidden',
    'The token needs the right host:<name> there: by `grants` of the host, or in the scope of a token that the host has issued',
  ],
])

/** The refusal of a host, with what to do about it. */
function advised(thrown: unknown): unknown {
  if (!(thrown instanceof UampError)) return thrown
  const advice = ADVICE.get(thrown.details?.['code'])
  return advice === undefined ? thrown : new UampError(thrown.code, `${thrown.message}. ${advice}`, { cause: thrown })
}

/** Without a token that some hosts want in the address. */
function shown(url: string): string {
  const { protocol, host, pathname } = new URL(url)
  return `${protocol}//${host}${pathname}`
}

function agentUrl(url: string, name: string): string {
  const { protocol, host, pathname } = new URL(url)
  return `${protocol.replace(/^ws/, 'http')}//${host}${serverPath(pathname.replace(/\/(ws|uamp)?\/?$/, ''))}/agents/${name}`
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
