import { statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { choicesOf, type Choices } from '../../core/agent-kit/choices.ts'
import { nearest } from '../../core/basics/nearest.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import { limitsText, priceText } from '../models/facts.ts'
import type { Connection } from './connection.ts'
import { UNPRICED, type Conversation } from './conversation.ts'
import { attach, attachImage, fromHome, type Attachment } from './files.ts'
import type { Console } from './input/console.ts'
import type { Page } from './page.ts'
import { usageText } from './show.ts'
import type { Chat, State } from './state.ts'
import type { Transcript } from './transcript.ts'

/** What commands work on. */
export interface Desk {
  readonly page: Page
  readonly console: Console
  readonly connection: Connection
  readonly conversation: Conversation
  readonly state: State
  readonly transcript: Transcript
  /** What `uamp chat` was called with. */
  readonly target: string
  /** Goes with the next message. */
  readonly attached: Attachment[]
}

/** What follows from a command: nothing, the end, another session, or a message. */
export type Next =
  | { readonly do: 'stay' }
  | { readonly do: 'leave' }
  | { readonly do: 'open'; readonly agent?: string; readonly session?: string }
  | { readonly do: 'say'; readonly text: string }

const STAY: Next = { do: 'stay' }
const ATTACHED = 32
const LISTED = 20

interface Command {
  readonly use: string
  readonly meaning: string
  run(rest: string, desk: Desk): Next | Promise<Next>
}

const COMMANDS: ReadonlyMap<string, Command> = new Map(
  Object.entries<Command>({
    help: { use: '', meaning: 'list the commands', run: (_, desk) => help(desk) },
    new: { use: '', meaning: 'begin a new chat', run: () => ({ do: 'open' }) },
    sessions: { use: '', meaning: 'list your earlier chats here', run: (_, desk) => sessions(desk) },
    resume: { use: '[number or id]', meaning: 'go on with an earlier chat', run: resume },
    model: { use: '[name]', meaning: 'list models and agents, or choose one', run: model },
    file: {
      use: '<path> [message]',
      meaning: 'send a file with your message; @path in a message does, too',
      run: (rest, desk) => take(rest, desk, { read: attach, example: '/file notes.txt' }),
    },
    image: {
      use: '<path> [message]',
      meaning: 'send a picture with your message',
      run: (rest, desk) => take(rest, desk, { read: attachImage, example: '/image photo.png' }),
    },
    tools: { use: '', meaning: 'list what the agent can use', run: (_, desk) => tools(desk) },
    save: { use: '[path]', meaning: 'save this chat as Markdown', run: save },
    usage: { use: '', meaning: 'show tokens and cost of this chat', run: (_, desk) => usage(desk) },
    raw: { use: '', meaning: 'show answers as they come, or as Markdown again', run: (_, desk) => raw(desk) },
    quit: { use: '', meaning: 'leave; the chat can be resumed', run: () => ({ do: 'leave' }) },
  }),
)
const ALIASES: Readonly<Record<string, string>> = { exit: 'quit', bye: 'quit', q: 'quit', '?': 'help', clear: 'new', models: 'model' }

export const COMMAND_NAMES: readonly string[] = [...COMMANDS.keys()]

/** Runs a line that begins with a slash. Lines that are the agent's commands, or begin with two slashes, are messages. */
export async function runCommand(line: string, desk: Desk): Promise<Next> {
  if (line.startsWith('//')) return { do: 'say', text: line.slice(1) }
  const [, given = '', rest = ''] = /^\/(\S*)\s*([^]*)$/.exec(line) ?? []
  const name = given === '' ? 'help' : (ALIASES[given] ?? given)
  const command = COMMANDS.get(name)
  if (command) return command.run(rest.trim(), desk)
  const theirs = agentCommands(desk)
  // A path is a message, too.
  if (theirs.some((each) => each.name === given) || given.includes('/')) return { do: 'say', text: line }
  const near = nearName(given, [...COMMANDS.keys(), ...Object.keys(ALIASES), ...theirs.map((each) => each.name)])
  desk.page.note(
    `There is no /${given}.${near === undefined ? '' : ` Did you mean /${near}?`} /help lists the commands; //${given} sends it to the agent.`,
    'yellow',
  )
  return STAY
}

function agentCommands({ conversation }: Pick<Desk, 'conversation'>) {
  return choicesOf(conversation.capabilities).commands
}

function help(desk: Desk): Next {
  const { page } = desk
  const rows = [...COMMANDS].map(([name, { use, meaning }]): readonly [string, string] => [`/${name} ${use}`.trim(), meaning])
  page.table([
    ...rows,
    ['"""', 'begin and end a message of several lines; Alt-Enter and Ctrl-J begin a new line'],
    ['@path', 'send a file with the message'],
    ['Ctrl-C', 'stop the answer; again to leave'],
    ['Ctrl-R', 'search your earlier messages'],
  ])
  const theirs = agentCommands(desk)
  if (theirs.length > 0) page.note(`Of ${desk.conversation.agent}:`)
  page.table(theirs.map(({ name, description = '' }) => [`${COMMANDS.has(name) ? '//' : '/'}${name}`, description]))
  return STAY
}

/** The newest first. */
function chatsHere({ state, target }: Pick<Desk, 'state' | 'target'>): readonly Chat[] {
  return state.chats
    .filter((chat) => chat.target === target)
    .reverse()
    .slice(0, LISTED)
}

function sessions(desk: Desk): Next {
  const chats = chatsHere(desk)
  if (chats.length === 0) desk.page.note('There are no earlier chats here.')
  desk.page.table(chats.map((chat, at) => [`${at + 1}`, labelOf(chat, desk.conversation.id)]))
  if (chats.length > 0) desk.page.note('/resume <number> goes on with one.')
  return STAY
}

function labelOf(chat: Chat, current: string): string {
  return `${timeOf(chat)}  ${chat.agent}  ${titleOf(chat)}${chat.session === current ? ' (this one)' : ''}`
}

function titleOf({ title, session }: Chat): string {
  return title === '' ? session : title
}

/** As clocks show it where the user is. */
function timeOf({ at }: Chat): string {
  const date = new Date(at)
  const two = (number: number): string => String(number).padStart(2, '0')
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}`
}

async function resume(rest: string, desk: Desk): Promise<Next> {
  const chats = chatsHere(desk)
  if (rest !== '') {
    const session = /^\d{1,3}$/.test(rest) ? chats[Number(rest) - 1]?.session : rest
    if (session !== undefined) return { do: 'open', session }
    desk.page.note(`There is no chat ${rest}: /sessions lists them.`, 'yellow')
    return STAY
  }
  const others = chats.filter(({ session }) => session !== desk.conversation.id).slice(0, 9)
  if (others.length === 0) return sessions(desk)
  // What was said comes first, because a narrow terminal cuts the rest off.
  const choices = others.map((chat, at) => ({ key: `${at + 1}`, label: `${titleOf(chat)}  (${timeOf(chat)}, ${chat.agent})` }))
  const at = await desk.console.choose({ text: 'Go on with', choices, closable: true }, new AbortController().signal)
  const session = at === undefined ? undefined : others[at]?.session
  return session === undefined ? STAY : { do: 'open', session }
}

async function model(rest: string, { page, conversation, connection }: Desk): Promise<Next> {
  const choices = choicesOf(conversation.capabilities).models
  const models = choices.map(({ id }) => id)
  const agents = await connection.agents()
  if (rest === '') {
    const here = ['this agent', limitsIn(conversation.capabilities)].filter((part) => part !== '').join('; ')
    page.table([
      ...choices.map((choice) => [choice.id, modelText(choice, conversation)] as const),
      ...agents.map((id) => [id, id === conversation.agent ? here : 'an agent'] as const),
    ])
    if (models.length + agents.length === 0) page.note(`${conversation.agent} lets you choose nothing.`)
    return STAY
  }
  if (models.includes(rest)) {
    await conversation.choose(rest)
    page.note(`(${rest} answers from now on)`)
    return STAY
  }
  if (agents.includes(rest)) return { do: 'open', agent: rest }
  const near = nearName(rest, [...models, ...agents])
  page.note(`There is no model or agent "${rest}".${near === undefined ? ' /model lists them.' : ` Did you mean ${near}?`}`, 'yellow')
  return STAY
}

function modelText(choice: Choices['models'][number], { agent, model: current }: Conversation): string {
  const price = choice.price ? priceText(choice.price) : 'no price is known'
  const what = choice.id === current ? `the model of ${agent} that answers now` : `a model of ${agent}`
  return [what, price, limitsIn(choice)].filter((part) => part !== '').join('; ')
}

interface Taking {
  readonly read: (path: string) => Attachment
  readonly example: string
}

function take(rest: string, { page, attached }: Desk, { read, example }: Taking): Next {
  const [, quoted, bare, message = ''] = /^(?:"([^"]+)"|(\S+))\s*([^]*)$/.exec(rest) ?? []
  const path = quoted ?? bare
  if (path === undefined || attached.length >= ATTACHED) {
    page.note(path === undefined ? `Name a file: ${example}` : `A message takes ${ATTACHED} files.`, 'yellow')
    return STAY
  }
  attached.push(read(path))
  if (message !== '') return { do: 'say', text: message }
  page.note(`(${path} goes with your next message)`)
  return STAY
}

function tools({ page, conversation }: Desk): Next {
  const { capabilities } = conversation
  const names = new Set([...(capabilities?.tools?.built_in_tools ?? []), ...(capabilities?.provides ?? [])])
  if (names.size === 0) page.note(`${conversation.agent} names no tools.`)
  for (const name of names) page.note(`· ${name}`)
  return STAY
}

async function save(rest: string, { page, console, conversation, transcript }: Desk): Promise<Next> {
  const path = rest === '' ? `chat-${conversation.id.slice(-8)}.md` : rest
  const file = fromHome(path)
  if (transcript.isEmpty) page.note('Nothing has been said yet.')
  else if (!statSync(file, { throwIfNoEntry: false }) || (await mayReplace(path, console))) {
    write(file, path, transcript.text(conversation.agent))
    page.note(`(saved as ${path})`)
  } else page.note('(not saved)')
  return STAY
}

async function mayReplace(path: string, console: Console): Promise<boolean> {
  const choices = [
    { key: 'y', label: 'Yes' },
    { key: 'n', label: 'No' },
  ]
  const question = { text: `${path} is there already. Replace it?`, choices, first: 1, closable: true } as const
  return (await console.choose(question, new AbortController().signal)) === 0
}

function write(file: string, path: string, text: string): void {
  try {
    writeFileSync(file, text, { mode: 0o600 })
  } catch (cause) {
    const { code = 'unknown reason' } = cause as NodeJS.ErrnoException
    const why = code === 'ENOENT' ? `there is no folder ${dirname(path)}` : code === 'EISDIR' ? 'it is a folder' : code
    throw new UampError('invalid_request', `${path} cannot be written: ${why}`, { cause })
  }
}

function usage({ page, conversation }: Desk): Next {
  page.note(conversation.usage ? usageText(conversation.usage) : 'The agent has reported no usage yet.')
  if (conversation.unpriced) page.note(UNPRICED)
  const limits = limitsIn(conversation.capabilities)
  if (limits !== '') page.note(`The model takes ${limits}.`)
  return STAY
}

function limitsIn(told: Pick<Capabilities, 'context_window' | 'max_output_tokens'> | undefined): string {
  return limitsText({ contextWindow: told?.context_window, maxOutput: told?.max_output_tokens })
}

function raw({ page }: Desk): Next {
  page.raw = !page.raw
  page.note(page.raw ? '(answers are shown as they come)' : '(answers are shown as Markdown)')
  return STAY
}

/** The name that begins as the given one does, or is most like it; undefined if none is. */
function nearName(given: string, names: readonly string[]): string | undefined {
  return names.find((name) => given !== '' && name.startsWith(given)) ?? nearest(given, names)
}
