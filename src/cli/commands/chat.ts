import { connect, UampClientError, type Client, type Session, type Status } from '../../client/node.ts'
import { UampError } from '../../protocol/errors.ts'
import { present } from '../../wire/fields.ts'
import { type Console, isYes } from '../chat/console.ts'
import { Conversation } from '../chat/conversation.ts'
import { Page } from '../chat/page.ts'
import { terminal } from '../chat/terminal.ts'
import { painter } from '../print.ts'
import { secretOf } from '../tokens.ts'
import { createInterface } from 'node:readline'
import { onSignal } from '../signals.ts'

export interface ChatOptions {
  readonly agent?: string
  readonly token?: string
  readonly tokenFile?: string
  readonly session?: string
  readonly color: boolean
}

const DEFAULT_URL = 'http://localhost:8787'
/** The exit code that shells give a program which Ctrl-C ended. */
const INTERRUPTED = 130

export async function chat(address: string, given: ChatOptions): Promise<number> {
  const { stdin, stdout, stderr, env } = process
  const options = { ...given, ...present({ token: secretOf(given, env) }) }
  const url = urlOf(address)
  const paint = (stream: NodeJS.WriteStream) => painter(stream, options.color)
  const page = new Page({ stdout, stderr, paint })
  const console =
    stdin.isTTY && stdout.isTTY
      ? terminal({ stdin, stdout, paint: paint(stdout) })
      : pipe({ stdin, ask: (question) => page.note(`${question} [y/n]`, 'yellow') })
  const left = new AbortController()
  const leave = (): void => left.abort()
  // An error means that nobody reads the answers any more.
  stdout.on('error', leave)
  let conversation: Conversation | undefined
  console.onInterrupt(() => conversation?.cancel() || leave())
  const client = connect(url, {
    ...present({ token: options.token, agent: options.agent }),
    onStatus: reconnects((text) => conversation?.notice(text)),
  })
  try {
    const session = await opened(client, { ...options, url, signal: left.signal })
    if (!session) return INTERRUPTED
    conversation = new Conversation(session, { page, console, resumed: options.session !== undefined })
    const end = await Promise.race([converse(conversation, console), ended(conversation), aborted(left.signal)])
    console.busy()
    if (end === 'over') page.note('(the session has ended)')
    else if (console.interactive) page.note(`To continue later: uamp chat${url === DEFAULT_URL ? '' : ` ${url}`} --session ${session.id}`)
    return console.interactive ? 0 : EXIT_CODES[end]
  } finally {
    client.close()
    console.close()
  }
}

type End = 'well' | 'badly' | 'over' | 'left'

const EXIT_CODES: Readonly<Record<End, number>> = { well: 0, badly: 1, over: 1, left: INTERRUPTED }

/** Sends one message after the other, until there are no more. */
async function converse(conversation: Conversation, console: Console): Promise<End> {
  let end: End = 'well'
  await conversation.caughtUp
  for (;;) {
    const line = await console.read()
    if (line === undefined || line.trim() === '/exit') return end
    if (line.trim() !== '' && !(await conversation.say(line))) end = 'badly'
  }
}

async function ended(conversation: Conversation): Promise<End> {
  await conversation.run()
  return 'over'
}

function aborted(signal: AbortSignal): Promise<End> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve('left')))
}

/** Reports when the connection is lost, and when it is back. */
function reconnects(tell: (text: string) => void): (status: Status) => void {
  let lost = false
  return (status) => {
    if (status === 'reconnecting' && !lost) tell('(the connection is lost; trying again)')
    if (status === 'open' && lost) tell('(connected again)')
    lost = status === 'reconnecting'
  }
}

interface Opening extends ChatOptions {
  readonly url: string
  readonly signal: AbortSignal
}

/** Undefined if the user did not wait for it. */
async function opened(client: Client, { url, token, session: id, signal }: Opening): Promise<Session | undefined> {
  const resume = id === undefined ? {} : { resume: { session_id: id, after: 0 } }
  try {
    return await client.session({ events: ['x.approval.request'], signal, ...resume })
  } catch (thrown) {
    if (signal.aborted) return undefined
    if (!(thrown instanceof UampClientError)) throw thrown
    throw new UampClientError({ code: thrown.code, message: advice(thrown, { url, token, id }) }, thrown)
  }
}

interface Attempt {
  readonly url: string
  readonly token: string | undefined
  readonly id: string | undefined
}

function advice({ code, message, details }: UampClientError, { url, token, id }: Attempt): string {
  const agents = details?.['agents']
  if (Array.isArray(agents)) return `${message}. Choose one: ${agents.map((name) => `--agent ${name}`).join(', ')}`
  switch (code) {
    case 'unreachable':
      return `There is no server at ${url}. Start one with \`npx uamp serve\`, or name another: uamp chat <url>`
    case 'unauthorized':
      return token === undefined
        ? `${url} wants a token: uamp chat --token-file <file>, UAMP_TOKEN=<secret>, or --token <secret>`
        : `${url} does not know this token: give the secret alone, without its name`
    case 'not_found':
      return id === undefined
        ? `${url} does not speak UAMP: ${message}`
        : `${message} that is yours. Leave --session out to begin a new one`
    default:
      return message
  }
}

function urlOf(address: string): string {
  const url = /^\w+:\/\//.test(address) ? address : `http://${address}`
  if (URL.canParse(url) && /^(https?|wss?):$/.test(new URL(url).protocol)) return url
  throw new UampError('invalid_request', `"${address}" is not the address of a server: write it like ${DEFAULT_URL}`)
}

interface PipeOptions {
  readonly stdin: NodeJS.ReadableStream
  readonly ask: (question: string) => void
}

/** A script or a file: every line is a message, or the answer to a question. */
function pipe({ stdin, ask }: PipeOptions): Console {
  const input = createInterface({ input: stdin, terminal: false, crlfDelay: Infinity })
  // Made now, because it keeps the lines that come before they are read.
  const lines = input[Symbol.asyncIterator]()
  let ahead: ReturnType<typeof lines.next> | undefined
  const next = async (): Promise<string | undefined> => {
    const { value, done } = await (ahead ??= lines.next())
    ahead = undefined
    return done ? undefined : value
  }
  return {
    interactive: false,
    read: next,
    async confirm(question, signal) {
      ask(question)
      const aborted = new Promise<undefined>((resolve) => signal.addEventListener('abort', () => resolve(undefined)))
      ahead ??= lines.next()
      const answer = await Promise.race([ahead, aborted])
      if (!answer) return false
      ahead = undefined
      return !answer.done && isYes(answer.value)
    },
    busy() {},
    rest() {},
    onInterrupt: (listener) => onSignal(['SIGINT'], listener),
    close: () => input.close(),
  }
}
