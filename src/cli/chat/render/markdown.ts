import type { Paint } from '../../print.ts'
import type { Flow } from './flow.ts'
import { highlight } from './highlight.ts'
import { Inline } from './inline.ts'
import { tableLines } from './table.ts'

/** The most characters of a code line, and of a table, that wait for their end. */
const CODE_LINE = 4096
const TABLE = 64 * 1024
const RULE = 40

/** The beginning of a line that does not tell yet what kind of line it is. */
const UNDECIDED = /^\s*(?:#{1,6}|[-*_+](?:\s*[-*_])*\s*|[-*+]\s+\[[ xX]?\]?|\d{1,9}[.)]?|>|`{1,2}|~{1,2}|(?:`{3,}|~{3,})[^`]*)?$/
const FENCE = /^(\s*)(`{3,}|~{3,})\s*([^`\s]*)/
const HEADING = /^\s{0,3}(#{1,6})\s+/
const LINE = /^\s*([-*_])(?:\s*\1){2,}\s*$/
const BULLET = /^(\s*)[-*+]\s+(?:\[([ xX])\]\s+)?/
const NUMBER = /^(\s*)(\d{1,9}[.)])\s+/
const QUOTE = /^\s*>\s?(?:>\s?)*/

export interface MarkdownOptions {
  readonly flow: Flow
  readonly paint: Paint
  /** Only breaks lines between words; marks stay as they are. */
  readonly plain: boolean
}

/** Shows Markdown while it comes, a word or a line of code at a time. */
export class Markdown {
  readonly #options: MarkdownOptions
  readonly #inline: Inline
  #mode: 'start' | 'inline' | 'code' | 'table' = 'start'
  #line = ''
  #fence = { mark: '', language: '', indent: 0 }
  /** The beginning of a code line that was too long to wait for its end is on the page. */
  #begun = false
  /** Something else was shown in the middle of a line. */
  #broken = false
  #table: string[] = []
  #tableLength = 0

  constructor(options: MarkdownOptions) {
    const { flow, paint, plain } = options
    this.#options = options
    this.#inline = new Inline({ paint, write: (text, style) => flow.text(text, plain ? undefined : style) })
  }

  write(text: string): void {
    const [first = '', ...lines] = text.split('\n')
    this.#feed(first)
    for (const line of lines) {
      this.#endLine()
      this.#feed(line)
    }
  }

  /** Something else is shown now, and then the text goes on: code is still code, and a line that was broken is one. */
  pause(): void {
    const isInLine = this.#mode === 'inline' || this.#line !== '' || this.#begun
    this.#settle()
    this.#broken ||= isInLine
  }

  /** The text is over. */
  end(): void {
    this.#settle()
    this.#mode = 'start'
    this.#broken = false
  }

  /** Writes what waits. */
  #settle(): void {
    if (this.#line !== '' || this.#begun) this.#endLine()
    if (this.#mode === 'table') this.#endTable()
    if (this.#mode === 'inline') {
      this.#inline.end()
      this.#options.flow.flush()
    }
  }

  #feed(given: string): void {
    const text = this.#broken ? given.trimStart() : given
    if (text === '') return
    this.#broken = false
    if (this.#mode === 'inline') return this.#words(text)
    this.#line += text
    if (this.#mode === 'table' && /^\s*[^\s|]/.test(this.#line)) this.#endTable()
    if (this.#mode === 'code' && this.#line.length > CODE_LINE) {
      this.#options.flow.text(this.#line)
      this.#line = ''
      this.#begun = true
    }
    if (this.#mode === 'start' && !UNDECIDED.test(this.#line)) this.#begin()
  }

  #words(text: string): void {
    if (this.#options.plain) this.#options.flow.text(text)
    else this.#inline.feed(text)
  }

  #endLine(): void {
    const { flow, paint, plain } = this.#options
    const line = this.#line
    if (this.#broken) {
      // What was shown meanwhile has ended it.
      this.#broken = false
      if (this.#mode === 'inline') this.#mode = 'start'
      return
    }
    if (this.#mode === 'inline') {
      this.#inline.end()
      flow.newline()
      this.#mode = 'start'
      return
    }
    this.#line = ''
    if (this.#mode === 'code') return this.#codeLine(line)
    if (this.#mode === 'table') return this.#row(line)
    if (FENCE.test(line)) return this.#openFence(line)
    if (LINE.test(line) && !plain) return flow.line(paint('dim', '─'.repeat(Math.min(RULE, flow.columns))))
    this.#line = line
    if (line.trim() !== '') this.#begin()
    this.#line = ''
    this.#inline.end()
    this.#mode = 'start'
    flow.newline()
  }

  /** The kind of the line is known. */
  #begin(): void {
    const { flow, paint, plain } = this.#options
    const line = this.#line
    if (!plain && /^\s*\|/.test(line)) {
      this.#mode = 'table'
      return
    }
    this.#mode = 'inline'
    this.#line = ''
    this.#inline.begin()
    if (plain) return this.#indented(line)
    const heading = HEADING.exec(line)
    if (heading) {
      this.#inline.begin(heading[1] === '#' ? ['bold', 'underline'] : ['bold'])
      return this.#inline.feed(line.slice(heading[0].length))
    }
    const bullet = BULLET.exec(line)
    const number = NUMBER.exec(line)
    const quote = QUOTE.exec(line)
    if (bullet) {
      const mark = bullet[2] === undefined ? '•' : bullet[2] === ' ' ? '☐' : '☑'
      flow.mark(`${bullet[1]}${mark} `, `${bullet[1]}  `)
      this.#inline.feed(line.slice(bullet[0].length))
    } else if (number) {
      const mark = `${number[1]}${number[2]} `
      flow.mark(mark, ' '.repeat(mark.length))
      this.#inline.feed(line.slice(number[0].length))
    } else if (quote) {
      const bars = '│ '.repeat(quote[0].match(/>/g)?.length ?? 1)
      flow.mark(bars, bars, (text) => paint('dim', text))
      this.#inline.begin(['dim'])
      this.#inline.feed(line.slice(quote[0].length))
    } else this.#indented(line)
  }

  #indented(line: string): void {
    const [indent = ''] = /^ */.exec(line) ?? []
    if (indent !== '') this.#options.flow.mark(indent, indent)
    this.#words(line.slice(indent.length))
  }

  #openFence(line: string): void {
    const [, indent = '', mark = '', language = ''] = FENCE.exec(line) ?? []
    this.#mode = 'code'
    this.#fence = { mark, language, indent: indent.length }
    this.#options.flow.line(this.#options.paint('dim', line))
  }

  /** Code is not broken into lines: the terminal does that, and a copy of it is whole. */
  #codeLine(line: string): void {
    const { flow, paint, plain } = this.#options
    const { mark, language, indent } = this.#fence
    if (this.#begun) {
      flow.text(line)
      flow.newline()
      this.#begun = false
      return
    }
    if (line.trim().startsWith(mark) && line.trim().replaceAll(mark[0] as string, '') === '') {
      this.#mode = 'start'
      return flow.line(paint('dim', line))
    }
    const code = line.slice(Math.min(indent, line.search(/\S|$/)))
    flow.line(plain ? code : highlight(code, language, paint))
  }

  #row(line: string): void {
    if (!/^\s*\|/.test(line)) {
      this.#endTable()
      this.#line = line
      return this.#endLine()
    }
    this.#table.push(line)
    this.#tableLength += line.length
    if (this.#tableLength > TABLE) this.#endTable()
  }

  #endTable(): void {
    const { flow } = this.#options
    const lines = tableLines(this.#table, flow.columns)
    this.#table = []
    this.#tableLength = 0
    this.#mode = 'start'
    for (const line of lines) {
      if (line.length > flow.columns) flow.text(line)
      else flow.line(line)
      if (line.length > flow.columns) flow.newline()
    }
  }
}
