import type { RunningServer } from '../../compose/index.ts'
import { UampError } from '../../protocol/errors.ts'
import { banner } from '../banner.ts'
import { openBrowser } from '../open-browser.ts'
import { painter } from '../print.ts'
import { onSignal } from '../signals.ts'
import { loadSetup, type Setup } from '../setup.ts'
import { environmentTokens, parseTokens } from '../tokens.ts'

export interface ServeFlags {
  readonly port?: number
  readonly host?: string
  readonly data?: string
  readonly token?: readonly string[]
  readonly allowAnonymous?: true
  readonly origin?: readonly string[]
  readonly open?: true
}

/** What the server cannot know: how its options are called here. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/^Port \d+ is in use/, '--port 0 takes any that is free'],
  [/needs more rights/, 'with --port'],
  [/can be reached from other machines/, '--token name:secret, or --allow-anonymous'],
  [/another data folder|check that the folder/, '--data names it, and --data memory needs none'],
]

/** Runs until it is told to stop. */
export async function serve(file: string | undefined, { version, ...flags }: ServeFlags & { readonly version: string }): Promise<number> {
  const { env, stdout } = process
  // A reader of the start-up text that has gone is no reason to stop.
  stdout.on('error', () => undefined)
  const fromFlags = parseTokens(flags.token ?? [], '--token')
  const setup = await loadSetup(file)
  const tokens = { ...setup.tokens, ...environmentTokens(env['UAMP_TOKENS']), ...fromFlags }
  const data = flags.data ?? env['UAMP_DATA'] ?? setup.data ?? '.uamp'
  const server = await listening(setup, { ...flags, data, tokens })
  const names = setup.agents.map(({ name }) => name)
  const root = setup.defaultAgent ?? (names.length === 1 ? names[0] : names.find((name) => name === 'demo'))
  const url = server.url.replace('//127.0.0.1:', '//localhost:')
  const callers = Object.keys(tokens)
  const host = flags.host ?? setup.host ?? '127.0.0.1'
  const anonymous = flags.allowAnonymous ?? callers.length === 0
  stdout.write(banner({ version, url, host, agents: names, root, data, tokens: callers, anonymous }, painter(stdout)))
  if (flags.open) openBrowser(url, () => stdout.write(`No browser could be opened: go to ${url}\n`))
  await stopped(server)
  return 0
}

async function listening(
  { agents, ...config }: Setup,
  flags: ServeFlags & { readonly data: string; readonly tokens: Readonly<Record<string, string>> },
): Promise<RunningServer> {
  const { data, tokens, allowAnonymous } = flags
  const port = flags.port ?? config.port
  const host = flags.host ?? config.host
  const origins = flags.origin ?? config.origins
  const { defaultAgent } = config
  // It is most of what there is to load, and what is wrong with the options or a file is told without it.
  const { serve: start } = await import('../../compose/index.ts')
  try {
    return await start(agents, {
      data,
      tokens,
      ...(port !== undefined && { port }),
      ...(host !== undefined && { host }),
      ...(origins && { origins }),
      ...(allowAnonymous && { allowAnonymous }),
      ...(defaultAgent !== undefined && { defaultAgent }),
    })
  } catch (thrown) {
    if (!(thrown instanceof UampError)) throw thrown
    const advice = ADVICE.find(([pattern]) => pattern.test(thrown.message))?.[1]
    throw advice === undefined ? thrown : new UampError(thrown.code, `${thrown.message} (${advice})`, { cause: thrown })
  }
}

/** Resolves when the server has drained after a signal. Another signal ends the process. */
function stopped(server: RunningServer): Promise<void> {
  return new Promise((resolve, reject) => {
    let stopping = false
    onSignal(['SIGINT', 'SIGTERM'], () => {
      if (stopping) {
        process.stdout.write('Stopped at once.\n')
        process.exit(0)
      }
      stopping = true
      const running = server.gateway.openResponses
      const wait =
        running === 0 ? '' : `: ${running === 1 ? 'an answer is' : `${running} answers are`} being finished; again to stop at once`
      process.stdout.write(`\nStopping${wait}\n`)
      server.close().then(resolve, reject)
    })
  })
}
