import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { isConfigError, isData } from '../../config/source.ts'
import type { Logger } from '../../core/ports/transport.ts'
import { secretsOf } from '../../core/secrets/secrets.ts'
import { UampClientError } from '../../client/node.ts'
import { UampError } from '../../protocol/errors.ts'
import { fieldsOf } from '../../protocol/json.ts'
import { present } from '../../wire/fields.ts'
import { complete } from '../chat/complete.ts'
import { Connection } from '../chat/connection.ts'
import { EXIT, exitCode } from '../chat/exit-codes.ts'
import type { Console } from '../chat/input/console.ts'
import { once, pipe } from '../chat/input/pipe.ts'
import { terminal } from '../chat/input/terminal.ts'
import { Media, picturesIn } from '../chat/media.ts'
import { Page } from '../chat/page.ts'
import { ChatPayments } from '../chat/payments.ts'
import { show } from '../chat/show.ts'
import { State, stateFolder } from '../chat/state.ts'
import { piped } from '../chat/stdin.ts'
import { Talk } from '../chat/talk.ts'
import { addressed, type Addressed } from '../chat/target.ts'
import { painter, report } from '../print.ts'
import { showsColors } from '../../server/node/log-line.ts'
import { onSignal } from '../signals.ts'
import { payTokenOf, secretOf } from '../tokens.ts'

export interface ChatOptions {
  readonly agent?: string
  readonly token?: string
  readonly tokenFile?: string
  readonly payTokenFile?: string
  readonly budget?: string
  readonly session?: string
  readonly protocol?: string
  readonly model?: string
  readonly data?: string
  readonly quiet?: true
  readonly json?: true
  readonly color: boolean
}

/** Codes of Node for a server that is not there. */
const NO_CONNECTION = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'])

/** Talks to an agent in the terminal, or for a script. Resolves with the exit code. */
export async function chat(words: readonly string[], options: ChatOptions): Promise<number> {
  const { stdout } = process
  const write = stdout.write.bind(stdout)
  const out = (text: string): void => void write(text)
  try {
    return await begin(words, options, out)
  } catch (thrown) {
    report(thrown)
    if (options.json) out(`${JSON.stringify({ type: 'error', error: errorOf(thrown) })}\n`)
    return isConfigError(thrown) ? EXIT.usage : exitCode(thrown)
  } finally {
    // An agent in this process could not write there meanwhile.
    stdout.write = write
  }
}

async function begin(words: readonly string[], options: ChatOptions, out: (text: string) => void): Promise<number> {
  const { stdin, stdout, stderr, env } = process
  const token = secretOf(options, env)
  const payToken = payTokenOf(options.payTokenFile, env)
  // Also an agent that runs here, and its tools, must not find it.
  delete env['UAMP_PAY_TOKEN']
  const to = addressed(words, { ...options, ...present({ token }) })
  const isPerson = Boolean(stdin.isTTY && stdout.isTTY) && to.question === undefined && !options.json && !options.quiet
  const paint = (stream: NodeJS.WriteStream) => painter(stream, options.color && showsColors(stream))
  const plain = !options.color || !showsColors(stdout)
  const answers = isPerson || stdout.isTTY ? stdout : onlyOurs(out)
  const page = new Page({ stdout: options.json ? stderr : answers, stderr, paint, plain, quiet: options.quiet ?? options.json ?? false })
  const ask = (question: string): void => page.note(question, 'yellow')
  const attached = to.question === undefined ? undefined : await piped(stdin, (text) => page.note(text))
  const state = new State({
    folder: isPerson ? stateFolder(env) : undefined,
    secrets: [token, payToken, ...secretsOf({ program: { env } })],
  })
  const console: Console = isPerson
    ? terminal({ stdin, stdout, paint: paint(stdout), past: state, complete })
    : to.question === undefined
      ? pipe({ stdin, ask })
      : once(to.question, ask)
  let talk: Talk | undefined
  const tell = (text: string): void => {
    // Not behind the prompt, which is there before the agent is.
    console.busy()
    page.error(text)
  }
  const isConfig = to.target.kind === 'file' && isData(to.target.path)
  const failures = new Failures(
    (text) => talk?.alarm(text),
    isConfig ? `(\`npx uamp doctor ${to.name}\` checks its keys and models)` : undefined,
  )
  const left = new AbortController()
  // An error means that nobody reads the answers any more.
  stdout.on('error', () => left.abort())
  onSignal(['SIGTERM', 'SIGHUP'], () => left.abort())
  const media = new Media(stdout.isTTY ? picturesIn(env) : 'none')
  try {
    const connection = await connectionTo(to, { ...options, ...present({ token }), isPerson, log: failures.log, tell })
    try {
      talk = new Talk({
        connection,
        page,
        console,
        state,
        payments: new ChatPayments({ console, page, token: payToken, budget: options.budget }),
        left,
        show: options.json ? (event) => out(`${JSON.stringify(event)}\n`) : (event) => show(event, { page, media }),
        target: to.target.kind === 'file' ? resolve(to.target.path) : to.name,
        agent: options.agent,
        session: options.session,
        attached: attached ? [attached] : [],
        mentions: isPerson || to.question !== undefined,
      })
      const code = await talk.run()
      if (code !== EXIT.failed || !failures.unreachable) return code
      page.error(`${whoIsMissing(to)}; then again: npx uamp chat ${to.name}`)
      return EXIT.unreachable
    } finally {
      await connection.close()
    }
  } finally {
    console.close()
  }
}

function whoIsMissing({ target, name }: Addressed): string {
  if (target.kind === 'file') return `What ${name} calls does not answer. Start it, or check its address`
  return `Nobody answers at ${name}. Check the address, or start what should be there`
}

interface Reaching extends ChatOptions {
  readonly isPerson: boolean
  readonly log: Logger
  readonly tell: (text: string) => void
}

async function connectionTo(
  { target, name, options }: Addressed,
  { agent, token, data, session, isPerson, log, tell }: Reaching,
): Promise<Connection> {
  if (target.kind === 'server') return new Connection({ url: target.url, name, options, token })
  const { env } = process
  const { openLocal } = await import('../chat/local.ts')
  // A script that asks one thing leaves nothing behind, and many of them may run at a time.
  const keeps = isPerson || session !== undefined
  const local = await openLocal({
    target,
    agent,
    data: data || env['UAMP_DATA'] || (keeps ? undefined : 'memory'),
    home: join(homedir(), '.uamp'),
    env,
    log,
    tell,
  })
  return new Connection({ url: 'http://localhost', name, options, local })
}

/** Why an agent in this process failed: nobody else could tell its author. */
class Failures {
  /** A remote agent could not be reached. */
  unreachable = false
  readonly #tell: (text: string) => void
  /** What to do about it; told once. */
  #hint: string | undefined

  constructor(tell: (text: string) => void, hint: string | undefined) {
    this.#tell = tell
    this.#hint = hint
  }

  readonly log: Logger = (level, message, fields) => {
    const error = fields?.['error']
    const isDebug = process.env['UAMP_DEBUG'] === '1'
    if (level !== 'error' && !isDebug) return
    const { code, syscall, path } = fieldsOf(error)
    if (NO_CONNECTION.has(String(code))) this.unreachable = true
    this.#tell(`(${message}${error instanceof Error ? `: ${(isDebug ? error.stack : undefined) ?? error.message}` : ''})`)
    const isMissing = code === 'ENOENT' && String(syscall).startsWith('spawn')
    const hint = isMissing ? `(install ${String(path)}, or check how it is written)` : this.#hint
    if (hint !== undefined) this.#tell(hint)
    this.#hint = undefined
  }
}

/** Standard output for the answers alone: what an agent in this process prints goes to standard error. */
function onlyOurs(out: (text: string) => void): NodeJS.WriteStream {
  const { stdout, stderr } = process
  stdout.write = stderr.write.bind(stderr)
  return { isTTY: false, write: (text: string) => out(text) } as unknown as NodeJS.WriteStream
}

function errorOf(thrown: unknown): { readonly code: string; readonly message: string } {
  const { code, message } = thrown instanceof UampClientError ? thrown : UampError.from(thrown)
  return { code, message }
}
