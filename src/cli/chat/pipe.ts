import { createInterface } from 'node:readline'
import { onSignal } from '../signals.ts'
import { isYes, type Console } from './console.ts'

export interface PipeOptions {
  readonly stdin: NodeJS.ReadableStream
  readonly ask: (question: string) => void
}

/** A script or a file: every line is a message, or the answer to a question. */
export function pipe({ stdin, ask }: PipeOptions): Console {
  const input = createInterface({ input: stdin, terminal: false, crlfDelay: Infinity })
  // Made now, because it keeps the lines that come before they are read.
  const lines = input[Symbol.asyncIterator]()
  let ahead: ReturnType<typeof lines.next> | undefined
  const next = async (): Promise<string | undefined> => {
    const { value, done } = await (ahead ??= lines.next())
    ahead = undefined
    return done ? undefined : value
  }
  return {
    interactive: false,
    read: next,
    async confirm(question, signal) {
      ask(question)
      const aborted = new Promise<undefined>((resolve) => signal.addEventListener('abort', () => resolve(undefined)))
      ahead ??= lines.next()
      const answer = await Promise.race([ahead, aborted])
      if (!answer) return false
      ahead = undefined
      return !answer.done && isYes(answer.value)
    },
    busy() {},
    rest() {},
    onInterrupt: (listener) => onSignal(['SIGINT'], listener),
    close: () => input.close(),
  }
}
