import { Command, CommanderError, InvalidArgumentError } from 'commander'
import { packageVersion } from '../serve/package-version.ts'
import { UampError } from '../protocol/errors.ts'
import { byteCount, duration } from './amounts.ts'
import type { AcpFlags } from './commands/acp.ts'
import type { ChatOptions } from './commands/chat.ts'
import type { ServeFlags } from './commands/serve.ts'
import type { InitFlags } from './commands/init.ts'
import type { PruneFlags, ShowFlags } from './commands/store.ts'
import { isConfigError } from '../config/source.ts'
import { report } from './report.ts'

/** Runs one command line, and ends the process when it is done. */
export async function run(args: readonly string[]): Promise<void> {
  try {
    await program().parseAsync(args, { from: 'user' })
  } catch (thrown) {
    const code = failed(thrown)
    // A file system that does not answer holds a thread, and an exit would wait for it.
    if (thrown instanceof UampError && thrown.code === 'timeout') await flushed().then(() => process.kill(process.pid, 'SIGKILL'))
    await leave(code)
  }
}

function program(): Command {
  const uamp = new Command('uamp')
    .description('Write an agent once; every protocol can talk to it.')
    .version(packageVersion(), '-v, --version')
    .exitOverride()
  uamp
    .command('serve')
    .description('offer agents on the network; without a file the demo agent, and models that there is a key for')
    .argument('[file]', 'an agent module (.ts, .js), a folder with one, or a config; default: ./uamp.config.*, else the demo')
    .option('-c, --config <file>', 'the config, where it is not ./uamp.config.*')
    .option('-p, --port <number>', 'port to listen on; 0: any that is free (default: 8787)', port)
    .option('--host <address>', 'address to listen on (default: 127.0.0.1)')
    .option('--data <folder>', 'where sessions are kept, or "memory" (default: $UAMP_DATA, else .uamp)')
    .option('--keep <time>', 'how long a session is kept after its last turn, such as 30d (default: 7d)', duration)
    .option('--keep-bytes <size>', 'beyond it the oldest sessions go, such as 10GB (default: 64GB)', byteCount)
    .option('--keep-bytes-each <size>', 'beyond it the oldest sessions of that caller go (default: 16GB)', byteCount)
    .option(
      '--token-file <file>',
      'admit callers with the secrets in this file, a line name:secret for each; also $UAMP_TOKENS=name:secret,…',
    )
    .option('--token <name:secret>', 'the same for one caller; repeatable. Other users of this machine can read it while it runs', list)
    .option('--allow-anonymous', 'let in callers without a token, also from other machines')
    .option('--origin <origin>', 'let web pages of this origin call; repeatable', list)
    .option('--allow-host <name>', 'answer to this name too, beside localhost and addresses; repeatable', list)
    .option('--open', 'open the browser')
    .addHelpText('after', SERVE_EXAMPLES)
    .action(async (file: string | undefined, flags: ServeFlags) => {
      const { serve } = await import('./commands/serve.ts')
      await leave(await serve(file, { ...flags, version: packageVersion() }))
    })
  uamp
    .command('init')
    .description('write a uamp.config.yaml with an agent that is a model, by asking')
    .option('--provider <name>', 'openai, anthropic, google, fireworks, deepseek, ollama or openai-compatible')
    .option('--model <name>', 'what the provider calls the model')
    .option('--base-url <url>', "the provider's address, where it is another than usual")
    .option('--name <name>', 'what clients call the agent')
    .option('-y, --yes', 'ask nothing: take what is usual')
    .option('--force', 'write over a config that is there')
    .action(async (flags: InitFlags) => {
      const { init } = await import('./commands/init.ts')
      await leave(await init(flags))
    })
  uamp
    .command('chat')
    .description('talk to an agent in the terminal; piped input is taken as one message a line')
    .argument('[url]', 'the server, or one agent of it: http://host/agents/name', 'http://localhost:8787')
    .option('--agent <name>', 'the agent, where there are several')
    .option('--token <secret>', 'the secret of a token that the server knows (default: $UAMP_TOKEN)')
    .option('--token-file <file>', 'a file with the secret in it')
    .option('--session <id>', 'go on with an earlier session')
    .option('--no-color', 'plain text')
    .addHelpText('after', CHAT_HELP)
    .action(async (url: string, options: ChatOptions) => {
      const { chat } = await import('./commands/chat.ts')
      await leave(await chat(url, options))
    })
  uamp
    .command('acp')
    .description('be the agent of an IDE that started this: ACP on standard input and output')
    .argument('[file]', 'an agent module (.ts, .js), a folder with one, or a config; default: ./uamp.config.*, else the demo')
    .option('--agent <name>', 'the agent, where there are several')
    .option('--url <url>', 'an agent elsewhere: http(s)://… as `remote` in a config, or ws(s)://…/acp')
    .option('--protocol <name>', 'what is spoken at --url (default: events)')
    .option('--model <name>', 'what the model is called there, for --protocol completions')
    .option('--token <secret>', 'what is shown at --url (default: $UAMP_TOKEN)')
    .option('--token-file <file>', 'a file with the secret in it')
    .option('--data <folder>', 'where sessions are kept, or "memory" (default: $UAMP_DATA, else ~/.uamp)')
    .action(async (file: string | undefined, flags: AcpFlags) => {
      const { acp } = await import('./commands/acp.ts')
      await leave(await acp(file, { ...flags, version: packageVersion() }))
    })
  addStore(uamp)
  nameHelp(uamp, 'uamp')
  return uamp
}

/** After a mistake, where the options of that very command are. */
function nameHelp(command: Command, path: string): void {
  command.showHelpAfterError(`\`${path} --help\` shows what there is.`)
  for (const each of command.commands) nameHelp(each, `${path} ${each.name()}`)
}

function addStore(uamp: Command): void {
  const store = uamp.command('store').description('what a server has stored: to see it, and to remove some of it')
  const data = ['--data <folder>', 'the data folder, also while a server has it open (default: $UAMP_DATA, else .uamp)'] as const
  store
    .command('show')
    .description('how much there is, of what and of whom')
    .option(...data)
    .option('--json', 'for programs')
    .action(async (flags: ShowFlags) => {
      const { show } = await import('./commands/store.ts')
      await leave(await show(flags))
    })
  store
    .command('prune')
    .description('remove sessions with everything in them; without --yes it only says how much that would be')
    .option(...data)
    .option('--older-than <time>', 'those without a turn for so long, such as 30d', duration)
    .option('--to-bytes <size>', 'the oldest, until there is no more than this, such as 1GB', byteCount)
    .option('--principal <name>', 'only what this caller has; by itself, all of it')
    .option('-y, --yes', 'do it')
    .action(async (flags: PruneFlags) => {
      const { prune } = await import('./commands/store.ts')
      await leave(await prune(flags))
    })
}

const SERVE_EXAMPLES = `
Examples:
  uamp serve                                        the demo agent at http://localhost:8787
  uamp serve agent.ts --port 3000                   your agent
  uamp serve --host 0.0.0.0 --token-file tokens     for other machines
  uamp init && uamp serve                           a model with a key, from uamp.config.yaml`

const CHAT_HELP = `
Ctrl-C stops the answer, a second one leaves; so does /exit. Other slash commands go to the agent.`

function port(text: string): number {
  const number = Number(text)
  if (text.trim() === '' || !Number.isInteger(number) || number < 0 || number > 65_535) {
    throw new InvalidArgumentError('Choose a number from 1 to 65535, or 0 for any port that is free.')
  }
  return number
}

function list(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}

function failed(thrown: unknown): number {
  // Commander has printed it by itself: help, the version, or what is wrong with the command line.
  if (thrown instanceof CommanderError) return thrown.exitCode
  report(thrown)
  return isConfigError(thrown) ? 2 : 1
}

/** Not by `process.exitCode`: an agent's timers and a peer that does not answer a close must not keep the process. */
async function leave(code: number): Promise<never> {
  await flushed()
  process.exit(code)
}

async function flushed(): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) {
    if (stream.writable) await new Promise<void>((resolve) => stream.write('', () => resolve()))
  }
}
