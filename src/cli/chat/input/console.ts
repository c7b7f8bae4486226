interface Choice {
  /** The key that chooses it. */
  readonly key: string
  readonly label: string
}

export interface Question {
  readonly text: string
  readonly choices: readonly Choice[]
  /** The choice that Enter takes if no other was moved to. Default: 0. */
  readonly first?: number
  /** The user asked for it: Ctrl-C closes it, as Escape does. */
  readonly closable?: true
}

/** The user's end of a chat: a person, or a pipe. */
export interface Console {
  readonly interactive: boolean
  /** The next message; undefined after the last one. */
  read(): Promise<string | undefined>
  /** The index of the choice; undefined if the question was aborted, or nobody is left to answer it. */
  choose(question: Question, signal: AbortSignal): Promise<number | undefined>
  /** A line that is not shown while it is typed, nor kept. Undefined: there was none, or nobody is there to type it. */
  secret(text: string, signal: AbortSignal): Promise<string | undefined>
  /** Hides the line that is being typed until `rest`, because text will be printed. */
  busy(): void
  rest(): void
  /** Calls the listener on Ctrl-C. */
  onInterrupt(listener: () => void): void
  close(): void
}
