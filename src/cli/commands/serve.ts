import { spawn } from 'node:child_process'
import type { RunningServer, ServeOptions } from '../../serve/index.ts'
import { believes } from '../../auth/settings.ts'
import { agentAtRoot } from '../../core/edge/asked.ts'
import type { ModelTable } from '../../core/ports/models.ts'
import type { Logger } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { serverLog, type LogFormat, type LogLevel } from '../../server/node/log.ts'
import { present } from '../../wire/fields.ts'
import { banner } from '../banner.ts'
import { retire, type AssembleContext } from '../../config/assemble.ts'
import { Modules } from '../../config/modules.ts'
import { Reloader } from '../../config/reload.ts'
import { servedModels } from '../models/served.ts'
import { painter, report } from '../print.ts'
import { onOrphaned, onSignal, STOP } from '../signals.ts'
import { loadSetup, type Setup } from '../setup.ts'
import { tlsFrom, type TlsFlags } from '../tls-flags.ts'
import { environmentTokens, fileTokens, parseTokens } from '../tokens.ts'

export interface ServeFlags extends TlsFlags {
  readonly config?: string
  readonly port?: number
  readonly host?: string
  readonly data?: string
  readonly keep?: number
  readonly keepBytes?: number
  readonly keepBytesEach?: number
  readonly token?: readonly string[]
  readonly allowAnonymous?: true
  readonly origin?: readonly string[]
  readonly allowHost?: readonly string[]
  readonly tokenFile?: string
  readonly open?: true
  readonly watch?: true
  readonly logLevel?: LogLevel
  readonly logFormat?: LogFormat
  /** False after `--no-access-log`. */
  readonly accessLog?: boolean
  readonly insecureDev?: true
}

/** Names the flags for errors of the server, which does not know them. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/^Port \d+ is in use/, '--port 0 takes any free port'],
  [/needs more rights/, 'with --port'],
  [/insecureDev is for/, '--insecure-dev'],
  [/can be reached from other machines/, '--token-file, or --allow-anonymous'],
  [/^\S+ \(tls\.cert\)/, '--tls-cert'],
  [/^\S+ \(tls\.key\)/, '--tls-key'],
  [/^\S+ \(tls\.clientCa\)/, '--tls-client-ca'],
  [/another data folder|check that the folder/, '--data names it, and --data memory needs none'],
]

/** Runs until a signal stops it. */
export async function serve(given: string | undefined, { version, ...flags }: ServeFlags & { readonly version: string }): Promise<number> {
  const { env, stdout } = process
  // The server goes on if nobody reads its output any more.
  stdout.on('error', () => undefined)
  const fromFlags = { ...fileTokens(flags.tokenFile), ...parseTokens(flags.token ?? [], '--token') }
  const { logLevel: level, logFormat: format } = flags
  const { log, set, writes } = serverLog(present({ level, format }))
  const { watch = false } = flags
  const context: AssembleContext = { env, modules: new Modules({ watch }), log }
  const setup = await loadSetup(fileOf(given, flags), context, watch)
  const { settings } = setup
  set(present({ level: level ?? settings.log?.level, format: format ?? settings.log?.format }))
  if (settings.connect) log('warn', 'This server connects to no host: `connect` in the config is for `uamp connect`')
  const models = await servedModels(env, (problem) => log('warn', problem))
  const tokens = { ...settings.tokens, ...environmentTokens(env['UAMP_TOKENS']), ...fromFlags }
  const data = flags.data || env['UAMP_DATA'] || settings.data || '.uamp'
  // Lines that the level leaves out are not made in the first place.
  const accessLog = writes('info') && flags.accessLog !== false && (settings.log?.access ?? true)
  const server = await listening(setup, { ...flags, data, tokens, log, accessLog, models })
  const names = setup.agents.map(({ name }) => name)
  const root = agentAtRoot(names, settings.defaultAgent)
  const url = server.url.replace('//127.0.0.1:', '//localhost:')
  const callers = Object.keys(tokens)
  const host = flags.host ?? settings.host ?? '127.0.0.1'
  const isBelieving = believes(settings.access ?? {})
  const anonymous = flags.allowAnonymous ?? (callers.length === 0 && !isBelieving)
  const known = { tokens: callers, anonymous, believes: isBelieving }
  const { notes, unused } = setup
  // Before the banner: a user who has read it may change a file.
  const reloader = reloading(setup, server, context)
  const shown = { version, url, host, agents: setup.agents, root, data, notes, ...known, ...present({ unused }) }
  stdout.write(banner(shown, painter(stdout)))
  if (flags.open) openBrowser(url, () => stdout.write(`No browser could be opened: go to ${url}\n`))
  await stopped(server)
  await reloader?.close()
  return 0
}

function fileOf(given: string | undefined, { config }: ServeFlags): string | undefined {
  if (given === undefined || config === undefined) return given ?? config
  throw new UampError('invalid_request', `Name one file to serve: either ${given}, or --config ${config}`)
}

function reloading({ assembly, again }: Setup, { agents }: RunningServer, context: AssembleContext): Reloader | undefined {
  if (!assembly || !again) return undefined
  return new Reloader({
    assembly,
    again,
    context,
    agents,
    onReload: (text) => process.stdout.write(`${text}\n`),
    onError: (thrown) => {
      report(thrown)
      process.stderr.write('The agents stay as they were.\n')
    },
  })
}

interface ListenOptions extends ServeFlags {
  readonly data: string
  readonly tokens: Readonly<Record<string, string>>
  readonly log: Logger
  readonly models: ModelTable | undefined
}

async function listening({ agents, settings, assembly }: Setup, flags: ListenOptions): Promise<RunningServer> {
  const { data, tokens, allowAnonymous, log, models, keep, keepBytes, keepBytesEach } = flags
  const { access, grants, hosting, defaultAgent, publicUrl, trustProxy, outbound, a2a, envelope, omnia, sign, payments } = settings
  const kept = present({ sessionTtlMs: keep, storedBytes: keepBytes, storedBytesPerPrincipal: keepBytesEach })
  const options = present({
    data,
    tokens,
    access,
    grants,
    hosting,
    payments,
    log,
    models,
    allowAnonymous,
    port: flags.port ?? settings.port,
    host: flags.host ?? settings.host,
    origins: flags.origin ?? settings.origins,
    allowedHosts: flags.allowHost ?? settings.allowedHosts,
    limits: { ...settings.limits, ...kept },
    defaultAgent,
    tls: tlsFrom(flags, settings.tls),
    insecureDev: flags.insecureDev,
    publicUrl,
    sign,
    trustProxy,
    outbound,
    a2a,
    envelope,
    omnia,
    accessLog: flags.accessLog,
  })
  // Most of the code to load. Mistakes in the options or in a file are reported without it.
  const { serve: start } = await import('../../serve/index.ts')
  try {
    return await start(agents, options as ServeOptions)
  } catch (thrown) {
    await retire(assembly)
    if (!(thrown instanceof UampError)) throw thrown
    const advice = ADVICE.find(([pattern]) => pattern.test(thrown.message))?.[1]
    throw advice === undefined ? thrown : new UampError(thrown.code, `${thrown.message} (${advice})`, { cause: thrown })
  }
}

/** Resolves when the server has drained after a signal. Another signal ends the process. */
function stopped(server: RunningServer): Promise<void> {
  return new Promise((resolve, reject) => {
    let stopping = false
    const stop = (): void => {
      if (stopping) return
      stopping = true
      const running = server.gateway.openResponses
      const wait =
        running === 0 ? '' : `: ${running === 1 ? 'an answer is' : `${running} answers are`} being finished; again to stop at once`
      process.stdout.write(`\nStopping${wait}\n`)
      server.close().then(resolve, reject)
    }
    onOrphaned(process.env, stop)
    onSignal(STOP, () => {
      if (!stopping) return stop()
      process.stdout.write('Stopped at once.\n')
      process.exit(0)
    })
  })
}

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ['open'],
  // The empty text is the title of the window. Without it, `start` would take the address for the title.
  win32: ['cmd', '/c', 'start', '""'],
}

function openBrowser(url: string, onFailure: () => void): void {
  const [command, ...args] = OPENERS[process.platform] ?? ['xdg-open']
  const child = spawn(command, [...args, url], { stdio: 'ignore', detached: true })
  child.once('error', onFailure)
  child.once('exit', (code) => code !== 0 && code !== null && onFailure())
  child.unref()
}
