import { emitKeypressEvents } from 'node:readline'
import { harmless, type Paint } from '../../print.ts'
import { onSignal } from '../../signals.ts'
import { widthOf } from '../render/width.ts'
import type { Console, Question } from './console.ts'
import { Editor } from './editor.ts'
import { apply, type Key, type Wish } from './keys.ts'
import { layout } from './layout.ts'
import { Menu } from './menu.ts'
import { Search } from './search.ts'
import { Secret } from './secret.ts'

const PROMPT = '> '
/** Bracketed paste: the terminal marks the beginning and the end of what is pasted. */
const PASTE = { on: '\u001B[?2004h', off: '\u001B[?2004l' }
/** The most characters of one paste, and the most messages that are entered ahead. */
const LONGEST_PASTE = 1024 * 1024
const AHEAD = 100
const EVERY_ROW = 1e9

/** Earlier messages, the oldest first. */
export interface Past {
  readonly entries: readonly string[]
  add(message: string): void
}

export interface TerminalOptions {
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WriteStream
  readonly paint: Paint
  readonly past: Past
  /** How the word at the cursor may go on, by what is before it: whole words. */
  readonly complete?: (word: string, before: string) => readonly string[]
  readonly now?: () => number
}

/** A person who types. */
export function terminal(options: TerminalOptions): Console {
  return new Terminal(options)
}

class Terminal implements Console {
  readonly interactive = true
  readonly #options: TerminalOptions
  readonly #editor = new Editor()
  readonly #typed: string[] = []
  #busy = false
  #ended = false
  /** Nobody has asked for a message yet: the user may begin to type while the agent is loaded. */
  #early = true
  #wanted: ((message: string | undefined) => void) | undefined
  #interrupt: () => void = () => undefined
  #menu: { readonly menu: Menu; readonly bare: boolean; readonly decide: (at: number | undefined) => void } | undefined
  #secret: Secret | undefined
  #search: Search | undefined
  #pasted: string | undefined
  /** What is drawn: how wide each row is, and where the cursor stands. */
  #drawn: { readonly widths: readonly number[]; readonly row: number; readonly column: number } | undefined
  /** The place in the past; undefined: the message is new. */
  #at: number | undefined
  #draft = ''

  constructor(options: TerminalOptions) {
    const { stdin, stdout } = options
    this.#options = options
    emitKeypressEvents(stdin)
    stdin.on('keypress', this.#press).on('end', this.#end)
    stdout.on('resize', this.#redraw)
    process.on('exit', this.#restore)
    this.#raw(true)
    stdin.resume()
    this.#draw()
  }

  read(): Promise<string | undefined> {
    if (this.#early) this.#hide()
    this.#early = false
    const ahead = this.#typed.shift()
    if (ahead !== undefined) {
      this.#echo(ahead)
      return Promise.resolve(ahead)
    }
    if (this.#ended) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      this.#wanted = resolve
      this.#draw()
    })
  }

  choose(question: Question, signal: AbortSignal): Promise<number | undefined> {
    if (this.#ended || signal.aborted) return Promise.resolve(undefined)
    const { stdout, paint } = this.#options
    this.#hide()
    return new Promise((resolve) => {
      const menu = new Menu({ ...question, text: harmless(question.text) }, this.#options.now ?? (() => performance.now()))
      const lines = menu.lines(stdout.columns)
      // What does not fit on the screen cannot be erased, so it is written once.
      const bare = lines.length + question.choices.length >= stdout.rows
      if (bare) stdout.write(`${paint('yellow', lines.join('\n'))}\n`)
      const decide = (at: number | undefined): void => {
        this.#hide()
        this.#menu = undefined
        signal.removeEventListener('abort', abort)
        const label = at === undefined ? undefined : question.choices[at]?.label
        if (!bare) stdout.write(paint('yellow', menu.question.text))
        stdout.write(`${label === undefined ? '' : paint('dim', ` ${label}`)}\n`)
        resolve(at)
        this.#draw()
      }
      const abort = (): void => decide(undefined)
      signal.addEventListener('abort', abort)
      this.#menu = { menu, bare, decide }
      this.#draw()
    })
  }

  async secret(text: string, signal: AbortSignal): Promise<string | undefined> {
    if (this.#ended || signal.aborted) return undefined
    const { stdout, paint } = this.#options
    this.#hide()
    stdout.write(paint('yellow', harmless(text)))
    this.#secret = new Secret(signal)
    const typed = await this.#secret.typed
    this.#secret = undefined
    stdout.write('\n')
    this.#draw()
    return typed
  }

  busy(): void {
    this.#hide()
    this.#busy = true
  }

  rest(): void {
    this.#busy = false
    this.#draw()
  }

  onInterrupt(listener: () => void): void {
    this.#interrupt = listener
    onSignal(['SIGINT'], listener)
  }

  close(): void {
    const { stdin, stdout } = this.#options
    this.#hide()
    this.#end()
    stdin.off('keypress', this.#press).off('end', this.#end)
    stdout.off('resize', this.#redraw)
    process.off('exit', this.#restore)
    this.#restore()
    stdin.pause()
  }

  readonly #press = (_text: unknown, key: Key): void => {
    if (key.name === 'paste-start') this.#pasted = ''
    else if (key.name === 'paste-end') this.#paste()
    else if (this.#pasted !== undefined) {
      if (this.#pasted.length < LONGEST_PASTE) this.#pasted += key.sequence ?? ''
      return
    } else if (this.#secret) return this.#secret.press(key)
    else if (this.#menu) return this.#pressMenu(key)
    else this.#type(key)
    this.#redraw()
  }

  readonly #end = (): void => {
    if (this.#ended) return
    this.#ended = true
    this.#menu?.decide(undefined)
    this.#secret?.end(undefined)
    this.#give(undefined)
  }

  /** A paste is never a command: not even its line breaks are. */
  #paste(): void {
    const text = (this.#pasted ?? '').replaceAll(/\r\n?/g, '\n')
    this.#pasted = undefined
    if (this.#secret) this.#secret.add(text)
    else if (!this.#menu) this.#editor.insert(harmless(text))
  }

  #pressMenu(key: Key): void {
    const { ctrl, name } = key
    const isInterrupt = ctrl && name === 'c'
    const closes = name === 'escape' || (ctrl && name === 'd') || (isInterrupt && this.#menu?.menu.question.closable)
    if (isInterrupt && !closes) return this.#interrupt()
    const at = closes ? undefined : this.#menu?.menu.press(key)
    if (at !== undefined || closes) this.#menu?.decide(at)
    else this.#redraw()
  }

  #type(key: Key): void {
    if (this.#search) {
      if (this.#search.press(key)) return
      const { found } = this.#search
      this.#search = undefined
      if (found !== undefined) this.#editor.set(found)
      if (key.name === 'escape' || (key.ctrl && (key.name === 'c' || key.name === 'g'))) return
    }
    const wish = apply(this.#editor, key)
    if (wish) this.#grant(wish)
  }

  #grant(wish: Wish): void {
    switch (wish) {
      case 'submit':
        return this.#submit()
      case 'interrupt':
        if (this.#busy || this.#editor.text === '') this.#interrupt()
        else this.#editor.take()
        this.#at = undefined
        return
      case 'leave':
        if (!this.#busy) this.#end()
        return
      case 'older':
      case 'newer':
        return this.#recall(wish === 'older' ? -1 : 1)
      case 'search':
        this.#search = new Search(this.#options.past.entries)
        return
      case 'complete':
        return this.#complete()
      case 'redraw':
        if (!this.#busy) this.#options.stdout.write('\u001B[2J\u001B[H')
        this.#drawn = undefined
        return
      case 'suspend':
        return this.#suspend()
    }
  }

  #submit(): void {
    const message = this.#editor.take()
    this.#at = undefined
    this.#options.past.add(message)
    if (this.#wanted && !this.#busy) this.#give(message)
    else if (this.#typed.length < AHEAD) this.#typed.push(message)
  }

  /** What was typed stays on the screen. */
  #give(message: string | undefined): void {
    const resolve = this.#wanted
    this.#wanted = undefined
    if (this.#drawn !== undefined) {
      this.#hide()
      this.#echo(message ?? '')
    }
    resolve?.(message)
  }

  #echo(text: string): void {
    const { stdout } = this.#options
    const { rows } = layout({ text, cursor: 0, columns: stdout.columns, height: EVERY_ROW, prompt: PROMPT })
    stdout.write(`${this.#painted(rows)}\n`)
  }

  #painted(rows: readonly string[]): string {
    return rows.join('\n').replace(new RegExp(`^${PROMPT}`), this.#options.paint('bold', PROMPT))
  }

  #recall(step: number): void {
    const { entries } = this.#options.past
    const at = (this.#at ?? entries.length) + step
    if (at < 0 || at > entries.length || (this.#at === undefined && step > 0)) return
    if (this.#at === undefined) this.#draft = this.#editor.text
    this.#at = at === entries.length ? undefined : at
    this.#editor.set(at === entries.length ? this.#draft : (entries[at] as string))
  }

  #complete(): void {
    const typed = this.#editor.text.slice(0, this.#editor.cursor)
    const word = /\S*$/.exec(typed)?.[0] ?? ''
    const found = this.#options.complete?.(word, typed.slice(0, typed.length - word.length)) ?? []
    const common = commonStart(found)
    if (common.length > word.length) this.#editor.insert(common.slice(word.length))
    else if (found.length > 1 && this.#drawn !== undefined) {
      this.#hide()
      this.#options.stdout.write(`${this.#options.paint('dim', found.slice(0, 20).join('  '))}\n`)
    }
  }

  #suspend(): void {
    this.#hide()
    this.#restore()
    process.once('SIGCONT', () => {
      this.#raw(true)
      this.#draw()
    })
    process.kill(process.pid, 'SIGTSTP')
  }

  readonly #redraw = (): void => {
    if (this.#drawn !== undefined) this.#hide()
    this.#draw()
  }

  #draw(): void {
    const { stdout, paint } = this.#options
    if (this.#drawn !== undefined || this.#ended || this.#secret) return
    if (this.#menu) {
      const { menu, bare } = this.#menu
      const rows = menu.rows({ columns: stdout.columns, height: stdout.rows, bare })
      stdout.write(paint('yellow', rows.join('\n')))
      const widths = rows.map(widthOf)
      this.#drawn = { widths, row: rows.length - 1, column: widths.at(-1) ?? 0 }
      return
    }
    if (this.#busy || !(this.#wanted || this.#early)) return
    const text = this.#search ? (this.#search.found ?? '') : this.#editor.text
    const { rows, row, column } = layout({
      text,
      cursor: this.#search ? text.length : this.#editor.cursor,
      columns: stdout.columns,
      height: stdout.rows,
      prompt: this.#search?.prompt ?? PROMPT,
    })
    stdout.write(`${this.#painted(rows)}${up(rows.length - 1 - row)}\r${column > 0 ? `\u001B[${column}C` : ''}`)
    this.#drawn = { widths: rows.map(widthOf), row, column }
  }

  #hide(): void {
    if (this.#drawn === undefined) return
    const { stdout } = this.#options
    const { widths, row, column } = this.#drawn
    // A terminal that has become narrower has wrapped the rows.
    // One without a size has wrapped nothing.
    const columns = stdout.columns || Infinity
    const taken = widths.map((width) => Math.max(1, Math.ceil(width / columns)))
    const above = sum(taken.slice(0, row)) + Math.floor(column / columns)
    // Not erased in one step: tmux takes that, at the top of the screen, for `clear`, and keeps the rows in its history.
    stdout.write(`\r${up(above)}\u001B[K${sum(taken) > 1 ? `\n\u001B[J${up(1)}` : ''}`)
    this.#drawn = undefined
  }

  #raw(on: boolean): void {
    const { stdin, stdout } = this.#options
    // Streams of tests have no modes.
    stdin.setRawMode?.(on)
    stdout.write(on ? PASTE.on : PASTE.off)
  }

  readonly #restore = (): void => this.#raw(false)
}

function up(rows: number): string {
  return rows > 0 ? `\u001B[${rows}A` : ''
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}

function commonStart(words: readonly string[]): string {
  const [first = '', ...rest] = words
  let length = first.length
  for (const word of rest) while (!word.startsWith(first.slice(0, length))) length--
  return first.slice(0, length)
}
