import { readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, extname } from 'node:path'
import type { Input } from '../../client/index.ts'
import { UampError } from '../../protocol/errors.ts'
import { sizeText } from '../amounts.ts'
import { endingOf } from './media.ts'

/** A server takes messages of 4 MiB by default, and base64 adds a third. */
const LARGEST = 2.9 * 1024 * 1024
const LONGEST_TEXT = 1024 * 1024
/** `@path`, or `@"path with spaces"`, at the beginning of a word. */
const MENTION = /(?<=^|\s)@(?:"([^"\n]+)"|(\S+))/g
const LIKE_A_PATH = /[/\\]|\.\w{1,8}$/
const AUDIO = /^\.(wav|mp3|flac|ogg|opus|m4a)$/
const TYPES: Readonly<Record<string, string>> = {
  '.pdf': 'application/pdf',
  '.zip': 'application/zip',
  '.mp4': 'video/mp4',
  '.docx': 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  '.xlsx': 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
}

/** A part of a message: media, or a text that is added to what was typed. */
export type Attachment = { readonly name: string } & ({ readonly text: string } | { readonly input: Input })

/** A path that may begin with `~`, as shells take it. */
export function fromHome(path: string): string {
  return path.replace(/^~(?=\/|$)/, homedir())
}

/** Reads a file for a message. The error says what is wrong with it. */
export function attach(path: string): Attachment {
  const file = fromHome(path)
  const stats = statSync(file, { throwIfNoEntry: false })
  if (!stats) throw new UampError('not_found', `There is no file ${path}`)
  if (!stats.isFile()) throw new UampError('invalid_request', `${path} is not a file`)
  if (stats.size > LARGEST) throw tooLarge(path, stats.size)
  return attachment(path, read(file, path))
}

/** Bytes for a message. Texts are added to it, so that every model can read them. */
export function attachment(name: string, bytes: Uint8Array): Attachment {
  if (bytes.length > LARGEST) throw tooLarge(name, bytes.length)
  const format = endingOf(bytes)
  const data = (): string => Buffer.from(bytes).toString('base64')
  const filename = basename(name)
  if (format) return { name, input: { type: 'input.image', image: data(), format, filename } }
  const text = textIn(bytes)
  if (text !== undefined) {
    if (text.length > LONGEST_TEXT) throw tooLarge(name, bytes.length, LONGEST_TEXT)
    return { name, text }
  }
  const ending = extname(name).toLowerCase()
  if (AUDIO.test(ending)) return { name, input: { type: 'input.audio', audio: data(), format: ending.slice(1), is_final: true, filename } }
  const mime_type = TYPES[ending] ?? 'application/octet-stream'
  return { name, input: { type: 'input.file', file: data(), filename, mime_type, size_bytes: bytes.length } }
}

/** A picture for a message. Its file must be one. */
export function attachImage(path: string): Attachment {
  const found = attach(path)
  if ('input' in found && found.input.type === 'input.image') return found
  throw new UampError('invalid_request', `${path} is no PNG, JPEG, GIF or WebP picture. /file sends other files`)
}

export interface Mentioned {
  readonly attachments: readonly Attachment[]
  /** Words that look like a file's path, but there is none. */
  readonly missing: readonly string[]
}

/** The files that a message names with `@`. Words like `@alice` stay words. */
export function mentionedIn(text: string): Mentioned {
  const found = new Map<string, Attachment>()
  const missing: string[] = []
  for (const [, quoted, bare] of text.matchAll(MENTION)) {
    // A sentence may go on after the path.
    const path = quoted ?? [bare, bare?.replace(/[.,;:!?)\]]+$/, '')].find((each) => each !== undefined && isFile(each))
    if (path !== undefined && isFile(path)) found.set(path, attach(path))
    else if (LIKE_A_PATH.test(quoted ?? bare ?? '')) missing.push(quoted ?? bare ?? '')
  }
  return { attachments: [...found.values()], missing }
}

/** The inputs of one message. */
export function inputsOf(text: string, attachments: readonly Attachment[]): readonly Input[] {
  const texts = attachments.flatMap((each) => ('text' in each ? [quoted(each.name, each.text)] : []))
  const inputs = attachments.flatMap((each) => ('input' in each ? [each.input] : []))
  const whole = [text, ...texts].filter((part) => part !== '').join('\n\n')
  return [...inputs, ...(whole === '' && inputs.length > 0 ? [] : [{ type: 'input.text' as const, text: whole }])]
}

/** A fence that is longer than any in the text. */
function quoted(name: string, text: string): string {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length))
  const fence = '`'.repeat(longest + 1)
  return `${name}:\n${fence}${extname(name).slice(1)}\n${text.replace(/\n$/, '')}\n${fence}`
}

function isFile(path: string): boolean {
  return statSync(fromHome(path), { throwIfNoEntry: false })?.isFile() ?? false
}

function read(file: string, path: string): Uint8Array {
  try {
    return readFileSync(file)
  } catch (cause) {
    throw new UampError('invalid_request', `${path} cannot be read: ${(cause as NodeJS.ErrnoException).code ?? 'unknown reason'}`, {
      cause,
    })
  }
}

function textIn(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function tooLarge(name: string, size: number, most = LARGEST): UampError {
  return new UampError('too_large', `${name} has ${sizeText(size)}, and a message has room for ${sizeText(most)}`)
}
