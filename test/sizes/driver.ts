import type { Cell } from './cells.ts'
import type { Pace } from './pace.ts'
import type { Said } from './said.ts'

/** Where a driver finds what it talks to. */
export interface Stage {
  readonly cell: Cell
  readonly prompt: string
  readonly pace: Pace
  /** A server with the agent, reached over a connection of that pace. */
  url(): Promise<string>
  /** To be done when the cell is. */
  after(task: () => void | Promise<void>): void
}

/** One protocol. To add one, write a file with one of these and name it in `drivers/index.ts`. */
export interface Driver {
  readonly name: string
  /** What its clients may ask for: a stream or not, kept or not. */
  readonly choices: readonly Pick<Cell, 'streamed' | 'stored'>[]
  /** It is spoken to, and speaks. */
  readonly sound?: boolean
  /** Gives what was heard. Throws `Told` where the protocol says that there is no answer, `Lost` where it ends without saying so. */
  ask(stage: Stage): Promise<Said>
  /** Why this cell may end in an error: the limit that is smaller than the answer. The error must hold `code`. */
  limit?(cell: Cell): Limit | undefined
}

export interface Limit {
  readonly code: string
  readonly why: string
}

/** What must never happen: an answer that looks complete, and is not. */
export class Lost extends Error {}

export const STREAMED_STORED = [{ streamed: true, stored: true }] as const
export const BOTH_STORED = [
  { streamed: true, stored: true },
  { streamed: false, stored: true },
] as const
export const ALL_CHOICES = [...BOTH_STORED, { streamed: true, stored: false }, { streamed: false, stored: false }] as const

/** The text of an answer: pieces as they came, and the whole where the protocol repeats it. Both must be the same. */
export class Hearing {
  readonly #pieces: string[] = []
  media: string | undefined
  readonly #sound: Buffer[] = []

  get silent(): boolean {
    return this.#pieces.length === 0
  }

  add(piece: string | undefined | null): void {
    if (piece) this.#pieces.push(piece)
  }

  hear(base64: string): void {
    this.#sound.push(Buffer.from(base64, 'base64'))
  }

  said(whole?: string): Said {
    const text = this.#pieces.join('')
    if (whole !== undefined && whole !== text) throw new Lost(`the pieces have ${text.length} characters, the whole ${whole.length}`)
    return { text, media: this.media, sound: this.#sound.length > 0 ? Buffer.concat(this.#sound) : undefined }
  }
}
