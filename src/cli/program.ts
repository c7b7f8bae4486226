import { existsSync } from 'node:fs'
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { packageVersion } from '../serve/package-version.ts'
import { UampError } from '../protocol/errors.ts'
import { amount, byteCount, duration } from './amounts.ts'
import type { AcpFlags } from './commands/acp.ts'
import type { ChatOptions } from './commands/chat.ts'
import type { ConnectFlags } from './commands/connect.ts'
import type { DoctorFlags } from './commands/doctor.ts'
import type { ServeFlags } from './commands/serve.ts'
import { addAccess, addKeys } from './identity-program.ts'
import { addLedger, addPay } from './pay-program.ts'
import { flushed, leave } from './leave.ts'
import { withTls } from './tls-flags.ts'
import type { InitFlags } from './commands/init.ts'
import type { PruneFlags, ShowFlags } from './commands/store.ts'
import type { VerifyFlags } from './commands/verify.ts'
import type { LogLevel } from '../server/node/log.ts'
import { isConfigError } from '../config/source.ts'
import { loadEnvFiles } from './env-file.ts'
import { report } from './print.ts'

/** Those of the server's log, which is not loaded to read a command line. */
const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const satisfies readonly LogLevel[]

/** Runs one command line, then ends the process. */
export async function run(args: readonly string[]): Promise<void> {
  try {
    await program().parseAsync(args, { from: 'user' })
  } catch (thrown) {
    const code = failed(thrown)
    // A file system that does not answer blocks a thread, which an exit would wait for.
    if (thrown instanceof UampError && thrown.code === 'timeout') await flushed().then(() => process.kill(process.pid, 'SIGKILL'))
    await leave(code)
  }
}

function program(): Command {
  const uamp = new Command('uamp')
    .description('Write an agent once; every protocol can talk to it.')
    .version(packageVersion(), '-v, --version')
    .exitOverride()
    .hook('preAction', (_, command) => loadEnvFiles(servedFile(command)))
  serving(
    uamp.command('serve'),
    'serve agents on the network; without a file, the demo agent and a model for each API key in the environment',
  )
  serving(uamp.command('dev'), 'serve agents, and load them again when one of their files changes: serve --watch')
  uamp
    .command('init')
    .description('ask a few questions, and write a uamp.config.yaml with an agent')
    .option('--provider <name>', 'openai, anthropic, google, fireworks, deepseek, ollama or openai-compatible')
    .option('--model <name>', "the model's name at the provider")
    .option('--base-url <url>', "the provider's address, if it is not the default")
    .option('--name <name>', "the agent's name for clients")
    .option('-y, --yes', 'ask nothing, and take the defaults')
    .option('--force', 'overwrite an existing config')
    .action(async (flags: InitFlags) => {
      const { init } = await import('./commands/init.ts')
      await leave(await init(flags))
    })
  uamp
    .command('chat')
    .description('talk to an agent in the terminal, or ask it one thing')
    .argument(
      '[agent]',
      'a server or one of its agents (http://host/agents/name), an agent module or config (agent.ts), a2a+https://…, ag-ui+https://…, completions+https://…, or "acp:program" (default: http://localhost:8787)',
    )
    .argument('[question...]', 'ask this, print the answer and leave; what is piped in goes with it')
    .option('--agent <name>', 'the agent, where there are several')
    .option('--token <secret>', 'the secret of your token (default: $UAMP_TOKEN)')
    .option('--token-file <file>', 'a file with the secret in it')
    .option('--pay-token-file <file>', 'a file with the token that pays for answers (default: $UAMP_PAY_TOKEN)')
    .option('--budget <amount>', 'what this chat may spend without asking, such as 0.10', amount)
    .option('--session <id>', 'continue an earlier session')
    .option('--protocol <name>', 'the protocol at a URL: events, completions, a2a or ag-ui (default: events)')
    .option('--model <name>', "the model's name, for completions")
    .option('--data <folder>', 'folder that keeps the sessions of an agent that runs here, or "memory" (default: $UAMP_DATA, else ~/.uamp)')
    .option('-q, --quiet', 'print only the answer')
    .option('--json', 'print every event as a line of JSON')
    .option('--no-color', 'plain text without colours, and Markdown as it came')
    .addHelpText('after', CHAT_HELP)
    .action(async (agent: string | undefined, question: readonly string[], options: ChatOptions) => {
      const { chat } = await import('./commands/chat.ts')
      await leave(await chat(agent === undefined ? [] : [agent, ...question], options))
    })
  uamp
    .command('acp')
    .description('serve an agent to an IDE: ACP on standard input and output')
    .argument('[file]', 'an agent module (.ts, .js), a folder with one, or a config; default: ./uamp.config.*, else the demo')
    .option('--agent <name>', 'the agent, where there are several')
    .option('--url <url>', 'a remote agent: http(s)://… as `remote` in a config, or ws(s)://…/acp')
    .option('--protocol <name>', 'the protocol at --url (default: events)')
    .option('--model <name>', "the model's name at --url, for --protocol completions")
    .option('--token <secret>', 'the token for --url (default: $UAMP_TOKEN)')
    .option('--token-file <file>', 'a file with the secret in it')
    .option('--data <folder>', 'folder that keeps the sessions, or "memory" (default: $UAMP_DATA, else ~/.uamp)')
    .action(async (file: string | undefined, flags: AcpFlags) => {
      const { acp } = await import('./commands/acp.ts')
      await leave(await acp(file, { ...flags, version: packageVersion() }))
    })
  addConnect(uamp)
  withTls(uamp.command('doctor'))
    .description('check Node, the config, keys, models, the data folder, the certificate and the port, and say what to do; changes nothing')
    .argument('[file]', 'an agent module (.ts, .js), a folder with one, or a config; default: ./uamp.config.*')
    .option('-c, --config <file>', 'the config file (default: ./uamp.config.*)')
    .option('-p, --port <number>', 'the port that the server would listen on', port)
    .option('--host <address>', 'the address that it would listen on')
    .option('--data <folder>', 'the data folder (default: $UAMP_DATA, else .uamp)')
    .option('--json', 'print JSON')
    .action(async (file: string | undefined, flags: DoctorFlags) => {
      const { doctor } = await import('./commands/doctor.ts')
      await leave(await doctor(file, flags))
    })
  addVerify(uamp)
  addModels(uamp)
  addStore(uamp)
  addKeys(uamp)
  addAccess(uamp)
  addPay(uamp)
  addLedger(uamp)
  nameHelp(uamp, 'uamp')
  return uamp
}

/** The file that a command serves, if it serves one. */
function servedFile(command: Command): string | undefined {
  if (command.name() === 'connect') return command.args.find((each) => !each.includes('://'))
  // The first word may be a file, an address, or the beginning of a question.
  if (command.name() === 'chat') return command.args.slice(0, 1).find((each) => existsSync(each))
  if (!['serve', 'dev', 'acp', 'doctor'].includes(command.name())) return undefined
  return command.args[0] ?? (command.opts() as { readonly config?: string }).config
}

/** `uamp dev` is `uamp serve --watch`. */
function serving(command: Command, description: string): void {
  withTls(command)
    .description(description)
    .argument('[file]', 'an agent module (.ts, .js), a folder with one, or a config; default: ./uamp.config.*, else the demo')
    .option('-c, --config <file>', 'the config file (default: ./uamp.config.*)')
    .option('-p, --port <number>', 'port to listen on; 0: any free port (default: 8787)', port)
    .option('--host <address>', 'address to listen on (default: 127.0.0.1)')
    .option('--data <folder>', 'folder that keeps the sessions, or "memory" (default: $UAMP_DATA, else .uamp)')
    .option('--keep <time>', 'keep a session for so long after its last turn, such as 30d (default: 7d)', duration)
    .option('--keep-bytes <size>', 'remove the oldest sessions beyond this size, such as 10GB (default: 64GB)', byteCount)
    .option('--keep-bytes-each <size>', 'remove the oldest sessions of a caller beyond this size (default: 16GB)', byteCount)
    .option('--token-file <file>', 'admit callers with the secrets in this file, one name:secret a line; also $UAMP_TOKENS=name:secret,…')
    .option(
      '--token <name:secret>',
      'admit one caller with this secret; repeatable. Other users of this machine can read it while the server runs',
      list,
    )
    .option('--allow-anonymous', 'admit callers without a token, also from other machines')
    .option('--origin <origin>', 'allow web pages of this origin to call; repeatable', list)
    .option('--allow-host <name>', 'answer to this host name, beside localhost and addresses; repeatable', list)
    .addOption(new Option('--log-level <level>', 'what to log (default: info)').choices(LOG_LEVELS))
    .addOption(new Option('--log-format <format>', 'how to log (default: text in a terminal, else json)').choices(['text', 'json']))
    .option('--no-access-log', 'no log line for each request')
    .option('--insecure-dev', 'for tests on this machine: also speak HTTP/2 without TLS')
    .option('--watch', 'load agents again when their files, or those that they import, change')
    .option('--open', 'open a browser')
    .addHelpText('after', SERVE_EXAMPLES)
    .action(async (file: string | undefined, flags: ServeFlags) => {
      const { serve } = await import('./commands/serve.ts')
      const watch = command.name() === 'dev' ? { watch: true as const } : {}
      await leave(await serve(file, { ...flags, ...watch, version: packageVersion() }))
    })
}

/** After a mistake, points to the help of that very command. */
function nameHelp(command: Command, path: string): void {
  command.showHelpAfterError(`\`npx ${path} --help\` lists the options.`)
  for (const each of command.commands) nameHelp(each, `${path} ${each.name()}`)
}

function addVerify(uamp: Command): void {
  uamp
    .command('verify')
    .description('check who signed an answer, and that it is what they signed; exit code 1 if it is not')
    .argument('[file]', 'a saved response.done, answer of Chat Completions or Responses, or transcript of a stream; "-" for standard input')
    .option('--signature <jwt>', 'the signature, if it is not in the file')
    .option('--response <file>', 'the text of the answer, if it is not in the file')
    .option('--request <file>', 'what was asked: the messages as JSON, or the body of the request')
    .option('--jwks <place>', "a file or URL with the issuer's public keys (default: where the issuer publishes them)")
    .option('--issuer <url>', 'the server, or the agent, that must have signed')
    .option('--json', 'print JSON')
    .action(async (file: string | undefined, flags: VerifyFlags) => {
      const { verify } = await import('./commands/verify.ts')
      await leave(await verify(file, flags))
    })
}

function addConnect(uamp: Command): void {
  uamp
    .command('connect')
    .description('offer agents through another server, which needs no way to reach this machine; no port is opened')
    .argument('[host]', 'its address: wss://host/ws (default: `connect` of the config)')
    .argument('[file]', 'an agent module (.ts, .js), a folder with one, or a config; default: ./uamp.config.*, else the demo')
    .option('--agent <name>', 'offer this agent; repeatable (default: all)', list)
    .option('--token <secret>', "the agents' token at the host, which may host:<name> (default: $UAMP_TOKEN)")
    .option('--token-file <file>', 'a file with the secret in it, which is read again whenever a token is needed')
    .option('--data <folder>', 'folder that keeps unfinished answers, or "memory" (default: $UAMP_DATA, else memory)')
    .addOption(new Option('--log-level <level>', 'what to log (default: warn)').choices(LOG_LEVELS))
    .addOption(new Option('--log-format <format>', 'how to log (default: text in a terminal, else json)').choices(['text', 'json']))
    .addHelpText('after', CONNECT_HELP)
    .action(async (host: string | undefined, file: string | undefined, flags: ConnectFlags) => {
      const { connect } = await import('./commands/connect.ts')
      await leave(
        await connect(
          [host, file].flatMap((each) => each ?? []),
          flags,
        ),
      )
    })
}

function addModels(uamp: Command): void {
  const models = uamp
    .command('models')
    .description('show what a model costs and how much it takes, or get newer prices')
    .argument('[name]', 'the name of a model, or a part of it')
    .action(async (name: string | undefined) => {
      const { showModels } = await import('./commands/models.ts')
      await leave(await showModels(name))
    })
  models
    .command('update')
    .description('replace the table of prices and limits, for all that is started later')
    .argument('[source]', 'a file, or a URL (default: the list of genai-prices on GitHub)')
    .action(async (source: string | undefined) => {
      const { updateModels } = await import('./commands/models.ts')
      await leave(await updateModels(source))
    })
}

function addStore(uamp: Command): void {
  const store = uamp.command('store').description('show or remove what a server has stored')
  const data = ['--data <folder>', 'the data folder, even while a server uses it (default: $UAMP_DATA, else .uamp)'] as const
  store
    .command('show')
    .description('show how much is stored, by kind and by caller')
    .option(...data)
    .option('--json', 'print JSON')
    .action(async (flags: ShowFlags) => {
      const { show } = await import('./commands/store.ts')
      await leave(await show(flags))
    })
  store
    .command('prune')
    .description('remove sessions with all their data; without --yes, only say how much that would be')
    .option(...data)
    .option('--older-than <time>', 'sessions without a turn for so long, such as 30d', duration)
    .option('--to-bytes <size>', 'the oldest sessions, until no more than this is left in a folder, such as 1GB', byteCount)
    .option('--principal <name>', "only this caller's sessions; alone, all of them")
    .option('-y, --yes', 'remove them')
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
  uamp serve --tls-cert cert.pem --tls-key key.pem  at https://localhost:8787, in HTTP/2 and HTTP/1.1
  uamp init && uamp serve                           a model with a key, from uamp.config.yaml`

const CHAT_HELP = `
Examples:
  uamp chat                                         the server at http://localhost:8787
  uamp chat agent.ts                                an agent in a file, without a server
  uamp chat a2a+https://agents.example              an agent that speaks A2A; also ag-ui+https://…
  uamp chat completions+http://localhost:11434/v1 --model llama3.2
  uamp chat "acp:npx some-coding-agent"             a program that speaks ACP, in this folder
  cat notes.txt | uamp chat "Summarize this"        one answer; -q and --json for scripts

In the chat, /help lists the commands, \`"""\` begins a message of several lines, @path sends a file, Ctrl-C stops the answer and a second
one leaves. Exit codes: 0 answered, 1 failed, 2 wrong command line, 3 refused, 4 unreachable, 130 interrupted.`

const CONNECT_HELP = `
Examples:
  UAMP_TOKEN=… uamp connect wss://agents.example/ws agent.ts    your agent, at https://agents.example/agents/<name>
  uamp connect wss://agents.example/ws --token-file token       the agents of the config in this folder, or the demo
  uamp connect                                                  as \`connect\` in uamp.config.yaml says

A host that cannot be reached is tried until it can. Ctrl-C finishes the running answers and leaves, a second one stops at once.
Exit codes: 0 left when asked to; 1 refused, taken over by another process, or wrong options; 2 wrong config.`

function port(text: string): number {
  const number = Number(text)
  if (text.trim() === '' || !Number.isInteger(number) || number < 0 || number > 65_535) {
    throw new InvalidArgumentError('Choose a number from 1 to 65535, or 0 for any free port.')
  }
  return number
}

function list(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}

function failed(thrown: unknown): number {
  // Commander has printed the help, the version or the mistake itself.
  if (thrown instanceof CommanderError) return thrown.exitCode
  report(thrown)
  return isConfigError(thrown) ? 2 : 1
}
