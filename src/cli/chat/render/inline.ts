import type { Paint } from '../../print.ts'
import type { Style } from './flow.ts'

type Format = Extract<Parameters<Paint>[0], readonly unknown[]>[number]

/** The most characters that wait for the mark which ends a piece. */
const LONGEST = 400
/** A mark, or what may become one. */
const SPECIAL = /[*_`~[\\!]/

interface Rule {
  readonly whole: RegExp
  /** True of a text that may become whole when more comes. */
  readonly open: RegExp
  readonly formats: readonly Format[]
  /** The mark counts only where no letter or digit is before it. */
  readonly outside?: true
}

const RULES: readonly Rule[] = [
  { whole: /^(`+)(?!`)([^]*?[^`])\1(?!`)/, open: /^`/, formats: ['cyan'] },
  { whole: /^(\*\*\*)(?=\S)([^]*?\S)\*\*\*(?!\*)/, open: /^\*\*\*(?=\S|$)/, formats: ['bold', 'italic'] },
  { whole: /^(\*\*)(?=[^\s*])([^]*?\S)\*\*(?!\*)/, open: /^\*\*(?=\S|$)/, formats: ['bold'] },
  { whole: /^(__)(?=[^\s_])([^]*?\S)__(?!\w)/, open: /^__(?=\S|$)/, formats: ['bold'], outside: true },
  { whole: /^(\*)(?=[^\s*])([^*]*[^\s*])\*(?!\*)/, open: /^\*(?=[^\s]|$)/, formats: ['italic'], outside: true },
  { whole: /^(_)(?=[^\s_])([^_]*[^\s_])_(?!\w)/, open: /^_(?=[^\s]|$)/, formats: ['italic'], outside: true },
  { whole: /^(~~)(?=\S)([^]*?\S)~~/, open: /^~(?=~|$)/, formats: ['strikethrough'] },
]
const LINK = /^!?\[([^\]]*)\]\(\s*<?([^()\s>]*(?:\([^()\s]*\)[^()\s>]*)?)>?(?:\s+"[^"]*")?\s*\)/
const LINK_OPEN = /^!?(?:\[[^\]]*(?:\](?:\([^)]*)?)?)?$/
const ESCAPED = /^\\([!-/:-@[-`{-~])/

export interface InlineOptions {
  readonly paint: Paint
  readonly write: (text: string, style: Style) => void
}

/** The marks inside a line of Markdown. A piece is written when its end is there; a mark without an end is a character like others. */
export class Inline {
  readonly #options: InlineOptions
  readonly #styles = new Map<string, Style>()
  #held = ''
  #formats: readonly Format[] = []
  #before = ''

  constructor(options: InlineOptions) {
    this.#options = options
  }

  /** Begins a line in these formats. */
  begin(formats: readonly Format[] = []): void {
    this.#formats = formats
    this.#before = ''
  }

  feed(text: string): void {
    this.#held = this.#parse(this.#held + text, this.#formats, false)
  }

  end(): void {
    this.#parse(this.#held, this.#formats, true)
    this.#held = ''
  }

  /** Returns the text that has to wait. */
  #parse(given: string, formats: readonly Format[], isAll: boolean): string {
    let text = given
    while (text !== '') {
      const at = text.search(SPECIAL)
      this.#emit(at < 0 ? text : text.slice(0, at), formats)
      if (at < 0) return ''
      text = text.slice(at)
      const taken = this.#take(text, formats, isAll)
      if (taken === undefined) return text
      text = text.slice(taken)
    }
    return ''
  }

  /** Writes what begins with a mark, and returns its length; undefined if its end may still come. */
  #take(text: string, formats: readonly Format[], isAll: boolean): number | undefined {
    const waits = !isAll && text.length < LONGEST
    if (text.length === 1 && waits) return undefined
    const escaped = ESCAPED.exec(text)
    if (escaped) return this.#emit(escaped[1] as string, formats, 2)
    const link = LINK.exec(text)
    if (link) return this.#link(link, formats)
    if (waits && /^!?\[/.test(text) && LINK_OPEN.test(text)) return undefined
    for (const { whole, open, formats: more, outside } of RULES) {
      if (!open.test(text) || (outside && /[\p{L}\p{N}]/u.test(this.#before))) continue
      const found = whole.exec(text)
      // At the end of what there is, the mark may go on and mean something else.
      if (found && (isAll || found[0].length < text.length)) return this.#inside(found, [...formats, ...more])
      if (waits) return undefined
    }
    const plain = /^(?:`+|\*+|_+|~+|.)/su.exec(text)?.[0] ?? ''
    return this.#emit(plain, formats, plain.length)
  }

  #inside([all = '', mark = '', inner = '']: RegExpExecArray, formats: readonly Format[]): number {
    this.#before = ''
    if (mark.startsWith('`')) this.#emit(inner.replace(/^ (.+) $/, '$1'), formats)
    else this.#parse(inner, formats, true)
    return all.length
  }

  #link([all = '', label = '', address = '']: RegExpExecArray, formats: readonly Format[]): number {
    if (label !== '') this.#parse(label, [...formats, 'underline'], true)
    if (address !== label) this.#emit(label === '' ? address : ` (${address})`, [...formats, 'dim'])
    return all.length
  }

  #emit(text: string, formats: readonly Format[], length = text.length): number {
    if (text === '') return length
    this.#before = text.slice(-1)
    this.#options.write(text, this.#styleOf(formats))
    return length
  }

  /** The same function for the same formats, so that parts of a word in one format stay together. */
  #styleOf(formats: readonly Format[]): Style {
    const key = formats.join()
    let style = this.#styles.get(key)
    if (!style) {
      style = formats.length === 0 ? String : (text) => this.#options.paint([...formats], text)
      this.#styles.set(key, style)
    }
    return style
  }
}
