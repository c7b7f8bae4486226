import { createInterface } from 'node:readline'
import { onSignal } from '../../signals.ts'
import type { Console, Question } from './console.ts'

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
    async choose(question, signal) {
      ask(asked(question))
      const aborted = new Promise<undefined>((resolve) => signal.addEventListener('abort', () => resolve(undefined)))
      ahead ??= lines.next()
      const answer = await Promise.race([ahead, aborted])
      if (!answer) return undefined
      ahead = undefined
      return answer.done ? undefined : chosen(question, answer.value)
    },
    secret: () => Promise.resolve(undefined),
    busy() {},
    rest() {},
    onInterrupt: (listener) => onSignal(['SIGINT'], listener),
    close: () => input.close(),
  }
}

/** One message, which is known already. Nobody is there to answer questions. */
export function once(message: string, ask: (question: string) => void): Console {
  let left: string | undefined = message
  return {
    interactive: false,
    read() {
      const next = left
      left = undefined
      return Promise.resolve(next)
    },
    choose(question) {
      ask(asked(question))
      return Promise.resolve(undefined)
    },
    secret: () => Promise.resolve(undefined),
    busy() {},
    rest() {},
    onInterrupt: (listener) => onSignal(['SIGINT'], listener),
    close() {},
  }
}

function asked({ text, choices }: Question): string {
  return `${text} [${choices.map(({ key }) => key).join('/')}]`
}

/** The key of a choice, or the beginning of its label: `y`, `yes`. */
function chosen({ choices }: Question, line: string): number | undefined {
  const answer = line.trim().toLowerCase()
  const at = choices.findIndex(({ key, label }) => answer === key || (answer !== '' && label.toLowerCase().split(/\W/)[0] === answer))
  return at < 0 ? undefined : at
}
