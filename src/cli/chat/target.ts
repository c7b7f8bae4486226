import { statSync } from 'node:fs'
import { basename } from 'node:path'
import { agentFile, findConfig } from '../../config/agents.ts'
import { UampError } from '../../protocol/errors.ts'
import { present } from '../../wire/fields.ts'

const DEFAULT_URL = 'http://localhost:8787'

/** Who to talk to: a uamp server, or an agent that runs in this process. */
export type Target =
  | { readonly kind: 'server'; readonly url: string }
  | { readonly kind: 'file'; readonly path: string }
  /** A remote agent, as `remote` in a config. */
  | { readonly kind: 'remote'; readonly name: string; readonly remote: Readonly<Record<string, unknown>> }

export interface TargetFlags {
  readonly agent?: string
  readonly protocol?: string
  readonly model?: string
  readonly token?: string
}

export interface Addressed {
  readonly target: Target
  /** What to type to reach the same target; empty for the default. */
  readonly name: string
  /** The options to type after it. */
  readonly options: string
  /** The rest of the words, as one message. */
  readonly question: string | undefined
}

const FILE = /\.(?:m?ts|[mc]?js|ya?ml|json)$/
const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i
const PROGRAM = /^acp:(?!\/\/)\s*(.+)$/s
const HOST = /^(?:localhost|\[[0-9a-f:]+\]|\d{1,3}(?:\.\d{1,3}){3}|(?:[\w-]+\.)+[a-z]{2,}|[\w.-]+(?=:\d))(?::\d{1,5})?(?:\/\S*)?$/i
const REMOTE = /^(a2a|ag-ui|completions|events)\+(https?:\/\/.*)$/is

/** Divides the words after `uamp chat` into who to talk to and what to say. */
export function addressed(words: readonly string[], flags: TargetFlags): Addressed {
  const [first = '', ...rest] = words
  const target = targetOf(first, flags)
  const said = (target ? rest : words).join(' ').trim()
  const question = said === '' ? undefined : said
  const options = optionsOf(flags)
  if (target) return { target, name: shown(first), options, question }
  return { target: serverOrRemote(DEFAULT_URL, flags), name: '', options, question }
}

/** A session knows its agent. A token is nothing to be shown. */
function optionsOf({ protocol, model }: TargetFlags): string {
  return Object.entries(present({ protocol, model }))
    .map(([name, value]) => ` --${name} ${shown(value)}`)
    .join('')
}

function targetOf(word: string, flags: TargetFlags): Target | undefined {
  if (word === '') return undefined
  const program = PROGRAM.exec(word)?.[1]
  if (program !== undefined) {
    const { command, args } = commandOf(program)
    return { kind: 'remote', name: agentName(basename(command)), remote: { acp: { command, args, folder: process.cwd() } } }
  }
  if (SCHEME.test(word)) return serverOrRemote(word, flags)
  if (/\s/.test(word)) return undefined
  if (FILE.test(word)) return { kind: 'file', path: word }
  const isFolder = statSync(word, { throwIfNoEntry: false })?.isDirectory() ?? false
  if (isFolder && (/[/\\]$|^\.{1,2}$/.test(word) || (findConfig(word) ?? agentFile(word)) !== undefined))
    return { kind: 'file', path: word }
  return HOST.test(word) ? serverOrRemote(`http://${word}`, flags) : undefined
}

function serverOrRemote(word: string, { agent, protocol, model, token }: TargetFlags): Target {
  const [, kind, address = word] = REMOTE.exec(word) ?? []
  const spoken = kind?.toLowerCase() ?? protocol ?? 'events'
  if (!URL.canParse(address) || !/^(https?|wss?):$/.test(new URL(address).protocol)) {
    throw new UampError(
      'invalid_request',
      `"${word}" is not the address of an agent: write it like ${DEFAULT_URL}, a2a+https://host, agent.ts, or acp:program`,
    )
  }
  if (spoken === 'events') return { kind: 'server', url: address }
  const isCompletions = spoken === 'completions'
  if (isCompletions && model === undefined) {
    throw new UampError('invalid_request', `Name the model at ${address}: npx uamp chat completions+${address} --model <name>`)
  }
  const name = isCompletions ? (model ?? '') : new URL(address).hostname
  const remote = present({ url: address, protocol: spoken, token, model: isCompletions ? model : undefined, agent })
  return { kind: 'remote', name: agentName(name), remote }
}

/** What an agent may be called. */
function agentName(text: string): string {
  return (
    text
      .replaceAll(/[^\w.-]+/g, '-')
      .replace(/^[^A-Za-z0-9]+/, '')
      .slice(0, 64) || 'remote'
  )
}

/** A program and its arguments, divided at spaces outside quotes. */
function commandOf(line: string): { readonly command: string; readonly args: readonly string[] } {
  const [command = '', ...args] = Array.from(line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g), ([, a, b, c]) => a ?? b ?? c ?? '')
  return { command, args }
}

/** A URL without its password, and a word that a shell takes for one. */
export function shown(word: string): string {
  const plain = SCHEME.test(word) ? word.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/@]*@/i, '$1') : word
  return /^[\w@%+=:,./[\]-]+$/.test(plain) ? plain : `'${plain.replaceAll("'", String.raw`'\''`)}'`
}
