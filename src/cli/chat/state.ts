import { appendFileSync, chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { Secrets } from '../../core/secrets/secrets.ts'
import { isRecord } from '../../protocol/json.ts'
import type { Past } from './input/terminal.ts'

/** What is kept between runs. The oldest goes first. */
const MESSAGES = 1_000
const LONGEST = 8 * 1024
const CHATS = 200
const TITLE = 60
const FILE_BYTES = 1024 * 1024

/** Texts that are secrets whatever they belong to: keys of vendors, tokens in headers, private keys, passwords. */
const SECRET =
  /\b(?:sk|pk|rk|ghp|gho|ghs|ghu|github_pat|glpat|xox[abprs]|fw|hf|npm|AIza|AKIA|ASIA|ya29)[-_.]?[A-Za-z0-9_-]{16,}|\bBearer\s+\S{8,}|\beyJ[\w-]{8,}\.[\w-]{8,}|-----BEGIN [A-Z ]*PRIVATE KEY|\b(?:password|passwd|secret|api[-_ ]?key|access[-_ ]?token|token)\b\s*[:=]\s*\S{4,}/i

/** The folder for what is kept between runs. */
export function stateFolder(env: NodeJS.ProcessEnv): string {
  const base = env['XDG_STATE_HOME'] || (process.platform === 'win32' && env['LOCALAPPDATA']) || join(homedir(), '.local', 'state')
  return join(base, 'uamp')
}

export interface StateOptions {
  /** The folder; undefined keeps nothing. */
  readonly folder: string | undefined
  /** Texts that are never kept. */
  readonly secrets: Iterable<string | undefined>
}

/** A chat that can be resumed. */
export interface Chat {
  /** When it was begun, in milliseconds. */
  readonly at: number
  /** What `uamp chat` was called with. */
  readonly target: string
  readonly session: string
  readonly agent: string
  /** The beginning of its first message. */
  readonly title: string
}

/** Earlier messages and chats, in files that only the user may read. Where they cannot be written, nothing is kept. */
export class State implements Past {
  readonly #folder: string | undefined
  readonly #secrets: Secrets
  #entries: string[] | undefined

  constructor({ folder, secrets }: StateOptions) {
    this.#folder = folder
    this.#secrets = new Secrets(secrets)
  }

  get entries(): readonly string[] {
    return (this.#entries ??= this.#load('history', isText, MESSAGES))
  }

  /** Keeps a message, unless it begins with a space, is very long, or contains a secret. */
  add(message: string): void {
    const text = message.trimEnd()
    if (text === '' || text.startsWith(' ') || text === this.entries.at(-1)) return
    if (text.length > LONGEST || this.#isSecret(text)) return
    this.#entries = [...this.entries, text].slice(-MESSAGES)
    this.#append('history', text)
  }

  get chats(): readonly Chat[] {
    return this.#load('chats', isChat, CHATS)
  }

  begin({ title, ...chat }: Chat): void {
    const line = title.replaceAll(/\s+/g, ' ').trim().slice(0, TITLE)
    this.#append('chats', { ...chat, title: this.#isSecret(title) ? '' : line })
  }

  #isSecret(text: string): boolean {
    return SECRET.test(text) || this.#secrets.text(text) !== text
  }

  /** The newest lines. A file that has grown too long is shortened. */
  #load<T>(name: string, is: (value: unknown) => value is T, most: number): T[] {
    const text = this.#read(name)
    const lines = text
      .slice(-FILE_BYTES)
      .split('\n')
      .filter((line) => line !== '')
    const kept = lines.slice(-most)
    if (lines.length > 2 * most || text.length > FILE_BYTES) this.#shorten(name, kept)
    return kept.flatMap((line) => {
      const value = parsed(line)
      return is(value) ? [value] : []
    })
  }

  #read(name: string): string {
    if (this.#folder === undefined) return ''
    try {
      return readFileSync(join(this.#folder, name), 'utf8')
    } catch {
      return ''
    }
  }

  #append(name: string, value: unknown): void {
    this.#write(name, (file) => {
      appendFileSync(file, `${JSON.stringify(value)}\n`, { mode: 0o600 })
      // An older file may have other rights.
      chmodSync(file, 0o600)
    })
  }

  #shorten(name: string, lines: readonly string[]): void {
    this.#write(name, (file) => {
      writeFileSync(`${file}.new`, lines.map((line) => `${line}\n`).join(''), { mode: 0o600 })
      renameSync(`${file}.new`, file)
    })
  }

  #write(name: string, write: (file: string) => void): void {
    if (this.#folder === undefined) return
    const file = join(this.#folder, name)
    try {
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
      write(file)
    } catch {
      // A home that is read-only is no reason not to chat.
    }
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isChat(value: unknown): value is Chat {
  return isRecord(value) && ['target', 'session', 'agent', 'title'].every((key) => isText(value[key])) && typeof value['at'] === 'number'
}
