/** The most characters that are kept for `/save`. The oldest messages go first. */
const MOST = 8 * 1024 * 1024

interface Said {
  readonly who: 'user' | 'agent'
  readonly text: string
}

/** What was said in this chat. */
export class Transcript {
  #said: Said[] = []
  #size = 0
  #dropped = false

  add(who: Said['who'], text: string): void {
    if (text === '') return
    this.#said.push({ who, text: text.slice(-MOST) })
    this.#size += text.length
    while (this.#size > MOST && this.#said.length > 1) {
      this.#size -= this.#said.shift()?.text.length ?? 0
      this.#dropped = true
    }
  }

  get isEmpty(): boolean {
    return this.#said.length === 0
  }

  clear(): void {
    this.#said = []
    this.#size = 0
    this.#dropped = false
  }

  /** As Markdown. */
  text(agent: string): string {
    const parts = this.#said.map(({ who, text }) => `## ${who === 'user' ? 'You' : agent}\n\n${text.trim()}\n`)
    return [...(this.#dropped ? ['(The beginning is missing.)\n'] : []), ...parts].join('\n')
  }
}
