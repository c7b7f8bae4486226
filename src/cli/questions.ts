import { createInterface } from 'node:readline'
import { UampError } from '../protocol/errors.ts'

interface Asked {
  readonly text: string
  /** How it is answered on the command line. */
  readonly flag: string | undefined
  /** The answer that was given there. */
  readonly given: string | undefined
  readonly usual: string | undefined
  /** What is wrong with an answer. */
  readonly check: (answer: string) => string | undefined
}

export type Ask = (question: Asked) => Promise<string>

/** Asks on the terminal, or reads one answer a line from a pipe. Silent: takes what is usual. */
export function asker({ silent }: { readonly silent: boolean }): { ask: Ask; close: () => void } {
  const { stdin, stdout } = process
  const lines = silent ? undefined : createInterface({ input: stdin })
  const answers = lines?.[Symbol.asyncIterator]()

  async function ask(question: Asked): Promise<string> {
    const { text, given, usual, check, flag } = question
    if (given !== undefined) return accepted(given, question)
    if (!answers) {
      if (usual !== undefined) return usual
      throw new UampError('invalid_request', `Say ${flag}: nothing is usual there`)
    }
    for (;;) {
      stdout.write(`${text}${usual === undefined ? '' : ` [${usual}]`}: `)
      const { value, done } = await answers.next()
      if (done) throw new UampError('invalid_request', 'There was no answer: say --yes to take what is usual')
      const answer = value.trim() === '' ? usual : value.trim()
      const problem = answer === undefined ? 'There is nothing usual here' : check(answer)
      if (answer !== undefined && problem === undefined) return answer
      stdout.write(`${problem}.\n`)
    }
  }
  return { ask, close: () => lines?.close() }
}

function accepted(given: string, { flag, check }: Asked): string {
  const problem = check(given)
  if (problem !== undefined) throw new UampError('invalid_request', `${flag}: ${problem}`)
  return given
}
