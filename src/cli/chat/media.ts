import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { MediaItem } from '../../protocol/content.ts'
import { bytesIn } from '../../protocol/base64.ts'
import { sizeText } from '../amounts.ts'

/** The most bytes of a file that is saved, and of a picture that is shown; the most files that one run saves. */
const LARGEST = 64 * 1024 * 1024
const SHOWN = 8 * 1024 * 1024
const FILES = 256
/** The kitty protocol: base64 in pieces of this length. */
const PIECE = 4096

/** How a terminal shows pictures. */
export type Pictures = 'kitty' | 'iterm2' | 'none'

/** Goes by what terminals say in the environment. Inside tmux and screen pictures do not get through. */
export function picturesIn(env: NodeJS.ProcessEnv): Pictures {
  const { TERM = '', TERM_PROGRAM = '', LC_TERMINAL = '', TMUX } = env
  if (TMUX || /^(tmux|screen|dumb)/.test(TERM)) return 'none'
  if (env['KITTY_WINDOW_ID'] !== undefined || TERM === 'xterm-kitty' || TERM === 'xterm-ghostty' || TERM_PROGRAM === 'ghostty')
    return 'kitty'
  if (/^(iTerm\.app|WezTerm|mintty)$/.test(TERM_PROGRAM) || LC_TERMINAL === 'iTerm2') return 'iterm2'
  return 'none'
}

interface Shown {
  /** Names the item, and where it is. */
  readonly line: string
  /** The sequence that shows it. */
  readonly picture?: string
}

/** Shows pictures, and saves what cannot be shown. */
export class Media {
  readonly #pictures: Pictures
  readonly #place: string
  #folder: string | undefined
  #saved = 0

  /** `place` is where the folder for saved files is made. */
  constructor(pictures: Pictures, place: string = tmpdir()) {
    this.#pictures = pictures
    this.#place = place
  }

  /** A person needs no id of what is shown or saved; a script may know the item by it. */
  show(item: MediaItem, toPerson = false): Shown {
    const facts = toPerson ? factsOf(item) : named(item)
    const source = sourceOf(item)
    const url = typeof source !== 'string' ? source.url : /^https?:\/\//.test(source.slice(0, 8)) ? source : undefined
    if (url !== undefined && !url.startsWith('data:')) return { line: `[${[...facts, url].join(' ')}]` }
    const text = url ?? (source as string)
    const bytes = text.length > LARGEST * 1.5 ? undefined : bytesIn(text.slice(text.startsWith('data:') ? text.indexOf(',') + 1 : 0))
    if (!bytes || bytes.length === 0) return { line: `[${named(item).join(' ')}]` }
    const picture = item.type === 'image' && bytes.length <= SHOWN ? this.#picture(bytes) : undefined
    if (picture !== undefined) return { line: `[${facts.join(' ')}]`, picture }
    return { line: `[${[...facts, this.#save(item, bytes)].join(' ')}]` }
  }

  #picture(bytes: Uint8Array): string | undefined {
    const data = Buffer.from(bytes).toString('base64')
    if (this.#pictures === 'iterm2') return `\u001B]1337;File=inline=1;size=${bytes.length};preserveAspectRatio=1:${data}\u0007`
    // kitty reads no other format than PNG.
    if (this.#pictures !== 'kitty' || endingOf(bytes) !== 'png') return undefined
    const pieces = data.match(new RegExp(`.{1,${PIECE}}`, 'g')) ?? []
    return pieces
      .map((piece, at) => `\u001B_G${at === 0 ? 'a=T,f=100,' : ''}m=${at === pieces.length - 1 ? 0 : 1};${piece}\u001B\\`)
      .join('')
  }

  /** Saves it in a folder of this run, which nobody else may read. Says where. */
  #save(item: MediaItem, bytes: Uint8Array): string {
    if (bytes.length > LARGEST || this.#saved >= FILES) return `(${sizeText(bytes.length)}, not saved)`
    try {
      this.#folder ??= mkdtempSync(join(this.#place, 'uamp-chat-'))
      const file = join(this.#folder, `${++this.#saved}-${nameOf(item, bytes)}`)
      writeFileSync(file, bytes, { mode: 0o600, flag: 'wx' })
      return `saved as ${file}`
    } catch (thrown) {
      return `(not saved: ${(thrown as Error).message})`
    }
  }
}

function sourceOf(item: MediaItem): string | { readonly url: string } {
  switch (item.type) {
    case 'image':
      return item.image
    case 'audio':
      return item.audio
    case 'video':
      return item.video
    case 'file':
      return item.file
  }
}

function factsOf(item: MediaItem): readonly string[] {
  const facts = item.type === 'file' ? [item.filename, item.mime_type] : [item.format, seconds(item), item.description]
  return [item.type, ...facts].filter((fact): fact is string => fact !== undefined && fact !== '')
}

function named(item: MediaItem): readonly string[] {
  return [...factsOf(item), ...(item.content_id ? [item.content_id] : [])]
}

function seconds(item: MediaItem): string | undefined {
  return 'duration_ms' in item && item.duration_ms !== undefined ? `${item.duration_ms / 1000} s` : undefined
}

/** The agent names a file, but not the folder it goes to. */
function nameOf(item: MediaItem, bytes: Uint8Array): string {
  const given = (item.filename ?? '')
    .replaceAll(/[^\w.-]+/g, '_')
    .replace(/^[.-]+/, '')
    .slice(-80)
  if (given !== '') return given
  const format = 'format' in item && /^[a-z0-9]{2,5}$/.test(item.format ?? '') ? item.format : undefined
  return `${item.type}.${endingOf(bytes) ?? (format === 'pcm16' ? 'pcm' : (format ?? 'bin'))}`
}

/** What kind of picture it is, by its first bytes. */
export function endingOf(bytes: Uint8Array): 'png' | 'jpeg' | 'gif' | 'webp' | undefined {
  const head = Buffer.from(bytes.subarray(0, 12)).toString('latin1')
  if (head.startsWith('\u0089PNG')) return 'png'
  if (head.startsWith('\u00FF\u00D8\u00FF')) return 'jpeg'
  if (head.startsWith('GIF8')) return 'gif'
  return head.startsWith('RIFF') && head.slice(8) === 'WEBP' ? 'webp' : undefined
}
