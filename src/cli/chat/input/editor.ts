import { graphemes } from '../render/width.ts'

/** The most characters of a message, and the steps that can be undone. */
const LONGEST = 1024 * 1024
const UNDO = 100
const WORD = /[\p{L}\p{N}_]/u
const QUOTES = '"""'

interface State {
  readonly text: string
  readonly cursor: number
}

/** The message that is being typed, and what readline's keys do with it. */
export class Editor {
  #text = ''
  /** An index in the text, never inside a character. */
  #cursor = 0
  #killed = ''
  #undo: State[] = []
  /** Letters that are typed in a row are one step. */
  #typing = false

  get text(): string {
    return this.#text
  }

  get cursor(): number {
    return this.#cursor
  }

  /** True inside a block of three quotes, where Enter begins a new line. */
  get isOpen(): boolean {
    const text = this.#text.trim()
    return text.startsWith(QUOTES) && !(text.length >= 2 * QUOTES.length && text.endsWith(QUOTES))
  }

  /** The message, without the quotes of a block. */
  get message(): string {
    const text = this.#text.trim()
    const isBlock = text.length >= 2 * QUOTES.length && text.startsWith(QUOTES) && text.endsWith(QUOTES)
    return isBlock ? text.slice(QUOTES.length, -QUOTES.length).replace(/^\n/, '').replace(/\n$/, '') : this.#text
  }

  set(text: string): void {
    this.#change({ text, cursor: text.length })
  }

  insert(text: string): void {
    const room = LONGEST - this.#text.length
    const added = text.slice(0, Math.max(0, room))
    const wasTyping = this.#typing
    const isTyping = added !== ' ' && added !== '\n' && lastOf(added) === added
    const after = this.#text.slice(0, this.#cursor) + added + this.#text.slice(this.#cursor)
    if (wasTyping && isTyping) {
      this.#text = after
      this.#cursor += added.length
    } else this.#change({ text: after, cursor: this.#cursor + added.length })
    this.#typing = isTyping
  }

  left(): void {
    this.#move(this.#cursor - (lastOf(this.#before).length || 0))
  }

  right(): void {
    this.#move(this.#cursor + (graphemes(this.#line(this.#after)).at(0)?.length ?? (this.#after === '' ? 0 : 1)))
  }

  wordLeft(): void {
    this.#move(this.#cursor - wordBefore(this.#before).length)
  }

  wordRight(): void {
    this.#move(this.#cursor + wordAfter(this.#after).length)
  }

  home(): void {
    this.#move(this.#before.lastIndexOf('\n') + 1)
  }

  end(): void {
    this.#move(this.#cursor + this.#line(this.#after).length)
  }

  /** Moves to the line above; false if there is none. */
  up(): boolean {
    const start = this.#before.lastIndexOf('\n') + 1
    if (start === 0) return false
    const above = this.#text.lastIndexOf('\n', start - 2) + 1
    this.#move(Math.min(above + this.#cursor - start, start - 1))
    return true
  }

  /** Moves to the line below; false if there is none. */
  down(): boolean {
    const next = this.#text.indexOf('\n', this.#cursor)
    if (next < 0) return false
    const start = this.#before.lastIndexOf('\n') + 1
    const end = this.#text.indexOf('\n', next + 1)
    this.#move(Math.min(next + 1 + this.#cursor - start, end < 0 ? this.#text.length : end))
    return true
  }

  backspace(): void {
    this.#cut(this.#cursor - lastOf(this.#before).length, this.#cursor)
  }

  delete(): void {
    this.#cut(this.#cursor, this.#cursor + (graphemes(this.#after.slice(0, 64))[0]?.length ?? 0))
  }

  /** Kills up to the end of the line, or the end of the line itself. */
  killEnd(): void {
    const rest = this.#line(this.#after).length
    this.#kill(this.#cursor, this.#cursor + (rest === 0 && this.#after !== '' ? 1 : rest))
  }

  killStart(): void {
    this.#kill(this.#before.lastIndexOf('\n') + 1, this.#cursor)
  }

  killWordLeft(): void {
    this.#kill(this.#cursor - wordBefore(this.#before).length, this.#cursor)
  }

  killWordRight(): void {
    this.#kill(this.#cursor, this.#cursor + wordAfter(this.#after).length)
  }

  /** Kills back to the space before. */
  killBack(): void {
    this.#kill(this.#cursor - (/\S*\s*$/.exec(this.#before)?.[0].length ?? 0), this.#cursor)
  }

  yank(): void {
    this.#typing = false
    this.insert(this.#killed)
  }

  /** Exchanges the two characters around the cursor. */
  transpose(): void {
    const at = this.#after === '' ? this.#cursor - lastOf(this.#before).length : this.#cursor
    const first = lastOf(this.#text.slice(0, at))
    const second = graphemes(this.#text.slice(at, at + 64))[0] ?? ''
    if (first === '' || second === '') return
    const text = this.#text.slice(0, at - first.length) + second + first + this.#text.slice(at + second.length)
    this.#change({ text, cursor: at + second.length })
  }

  undo(): void {
    const last = this.#undo.pop()
    if (!last) return
    this.#text = last.text
    this.#cursor = last.cursor
    this.#typing = false
  }

  /** Empties it, and returns the message that it held. */
  take(): string {
    const { message } = this
    this.#text = ''
    this.#cursor = 0
    this.#undo = []
    this.#typing = false
    return message
  }

  get #before(): string {
    return this.#text.slice(0, this.#cursor)
  }

  get #after(): string {
    return this.#text.slice(this.#cursor)
  }

  #line(text: string): string {
    const end = text.indexOf('\n')
    return end < 0 ? text : text.slice(0, end)
  }

  #move(cursor: number): void {
    this.#cursor = cursor
    this.#typing = false
  }

  #kill(from: number, to: number): void {
    if (from === to) return
    this.#killed = this.#text.slice(from, to)
    this.#cut(from, to)
  }

  #cut(from: number, to: number): void {
    if (from !== to) this.#change({ text: this.#text.slice(0, from) + this.#text.slice(to), cursor: from })
  }

  #change({ text, cursor }: State): void {
    this.#undo.push({ text: this.#text, cursor: this.#cursor })
    if (this.#undo.length > UNDO) this.#undo.shift()
    this.#text = text
    this.#cursor = cursor
    this.#typing = false
  }
}

function lastOf(text: string): string {
  return graphemes(text.slice(-64)).at(-1) ?? ''
}

function wordBefore(text: string): string {
  let at = text.length
  while (at > 0 && !WORD.test(text[at - 1] as string)) at--
  while (at > 0 && WORD.test(text[at - 1] as string)) at--
  return text.slice(at)
}

function wordAfter(text: string): string {
  let at = 0
  while (at < text.length && !WORD.test(text[at] as string)) at++
  while (at < text.length && WORD.test(text[at] as string)) at++
  return text.slice(0, at)
}
