/** The person, or the pipe, at this end of a chat. */
export interface Console {
  readonly interactive: boolean
  /** The next message; undefined when there will be none. */
  read(): Promise<string | undefined>
  /** A question that is answered with yes or no. An aborted one is a no. */
  confirm(question: string, signal: AbortSignal): Promise<boolean>
  /** From now on text is printed; a line that is being typed is put away until `rest`. */
  busy(): void
  rest(): void
  /** Ctrl-C. */
  onInterrupt(listener: () => void): void
  close(): void
}

export function isYes(text: string): boolean {
  return /^\s*y(es)?\s*$/i.test(text)
}
