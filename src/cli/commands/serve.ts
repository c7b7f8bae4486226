import type { RunningServer, ServeOptions } from '../../serve/index.ts'
import { agentAtRoot } from '../../core/edge/choose-agent.ts'
import type { Logger } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { banner } from '../banner.ts'
import { retire, type AssembleContext, type Assembly } from '../../config/assemble.ts'
import { Modules } from '../../config/modules.ts'
import { Reloader } from '../../config/reload.ts'
import { openBrowser } from '../open-browser.ts'
import { painter } from '../print.ts'
import { report } from '../report.ts'
import { onOrphaned, onSignal, STOP } from '../signals.ts'
import { loadSetup, type Setup } from '../setup.ts'
import { environmentTokens, fileTokens, parseTokens } from '../tokens.ts'

export interface ServeFlags {
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
}

/** What the server cannot know: how its options are called here. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/^Port \d+ is in use/, '--port 0 takes any that is free'],
  [/needs more rights/, 'with --port'],
  [/can be reached from other machines/, '--token-file, or --allow-anonymous'],
  [/another data folder|check that the folder/, '--data names it, and --data memory needs none'],
]

/** Runs until it is told to stop. */
export async function serve(given: string | undefined, { version, ...flags }: ServeFlags & { readonly version: string }): Promise<number> {
  const { env, stdout } = process
  // A reader of the start-up text that has gone is no reason to stop.
  stdout.on('error', () => undefined)
  const fromFlags = { ...fileTokens(flags.tokenFile), ...parseTokens(flags.token ?? [], '--token') }
  const log = lazyLog()
  const context: AssembleContext = { env, modules: new Modules(), log }
  const setup = await loadSetup(fileOf(given, flags), context)
  const { settings } = setup
  const tokens = { ...settings.tokens, ...environmentTokens(env['UAMP_TOKENS']), ...fromFlags }
  const data = flags.data || env['UAMP_DATA'] || settings.data || '.uamp'
  const server = await listening(setup, { ...flags, data, tokens, log })
  const names = setup.agents.map(({ name }) => name)
  const root = agentAtRoot(names, settings.defaultAgent)
  const url = server.url.replace('//127.0.0.1:', '//localhost:')
  const callers = Object.keys(tokens)
  const host = flags.host ?? settings.host ?? '127.0.0.1'
  const anonymous = flags.allowAnonymous ?? callers.length === 0
  const { notes } = setup
  // Before the banner: whoever has read it may change a file.
  const reloader = setup.assembly && reloading(setup.assembly, server, context)
  stdout.write(banner({ version, url, host, agents: names, root, data, tokens: callers, anonymous, notes }, painter(stdout)))
  if (flags.open) openBrowser(url, () => stdout.write(`No browser could be opened: go to ${url}\n`))
  await stopped(server)
  await reloader?.close()
  return 0
}

function fileOf(given: string | undefined, { config }: ServeFlags): string | undefined {
  if (given === undefined || config === undefined) return given ?? config
  throw new UampError('invalid_request', `Name one file to serve: either ${given}, or --config ${config}`)
}

/** Loaded with the first line, which most who start a server with a mistake in its config do not get to. */
function lazyLog(): Logger {
  let log: Logger | undefined
  let loading: Promise<void> | undefined
  return (level, message, fields) => {
    if (log) return log(level, message, fields)
    loading ??= import('../../server/node/log.ts').then(({ pinoLog }) => void (log = pinoLog()))
    void loading.then(() => log?.(level, message, fields))
  }
}

function reloading(assembly: Assembly, { agents }: RunningServer, context: AssembleContext): Reloader {
  return new Reloader({
    assembly,
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
}

async function listening({ agents, settings, assembly }: Setup, flags: ListenOptions): Promise<RunningServer> {
  const { data, tokens, allowAnonymous, log } = flags
  const port = flags.port ?? settings.port
  const host = flags.host ?? settings.host
  const origins = flags.origin ?? settings.origins
  const allowedHosts = flags.allowHost ?? settings.allowedHosts
  const { defaultAgent, publicUrl, trustProxy, outbound, a2a, omnia } = settings
  const limits = { ...settings.limits, ...kept(flags) }
  // It is most of what there is to load, and what is wrong with the options or a file is told without it.
  const { serve: start } = await import('../../serve/index.ts')
  try {
    return await start(agents, {
      data,
      tokens,
      log,
      limits: limits as NonNullable<ServeOptions['limits']>,
      ...(port !== undefined && { port }),
      ...(host !== undefined && { host }),
      ...(origins && { origins }),
      ...(allowAnonymous && { allowAnonymous }),
      ...(publicUrl !== undefined && { publicUrl }),
      ...(trustProxy && { trustProxy }),
      ...(allowedHosts && { allowedHosts }),
      ...(outbound?.allow && { outbound: { allow: outbound.allow } }),
      ...(a2a && { a2a: a2a as NonNullable<ServeOptions['a2a']> }),
      ...(omnia && { omnia: omnia as NonNullable<ServeOptions['omnia']> }),
      ...(defaultAgent !== undefined && { defaultAgent }),
    })
  } catch (thrown) {
    await retire(assembly)
    if (!(thrown instanceof UampError)) throw thrown
    const advice = ADVICE.find(([pattern]) => pattern.test(thrown.message))?.[1]
    throw advice === undefined ? thrown : new UampError(thrown.code, `${thrown.message} (${advice})`, { cause: thrown })
  }
}

function kept({ keep, keepBytes, keepBytesEach }: ServeFlags): NonNullable<ServeOptions['limits']> {
  return {
    ...(keep !== undefined && { sessionTtlMs: keep }),
    ...(keepBytes !== undefined && { storedBytes: keepBytes }),
    ...(keepBytesEach !== undefined && { storedBytesPerPrincipal: keepBytesEach }),
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
