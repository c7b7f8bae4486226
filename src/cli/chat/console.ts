/** The user's end of a chat: a person, or a pipe. */
export interface Console {
  readonly interactive: boolean
  /** The next message; undefined after the last one. */
  read(): Promise<string | undefined>
  /** Asks a yes-or-no question. An aborted question gives no. */
  confirm(question: string, signal: AbortSignal): Promise<boolean>
  /** Hides the line that is being typed until `rest`, because text will be printed. */
  busy(): void
  rest(): void
  /** Calls the listener on Ctrl-C. */
  onInterrupt(listener: () => void): void
  close(): void
}

export function isYes(text: string): boolean {
  return /^\s*y(es)?\s*$/i.test(text)
}
