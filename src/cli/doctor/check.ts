/** `wrong`: the server would not start, or its agents would not answer. `note`: it works, but somebody should know. */
type State = 'ok' | 'note' | 'wrong'

/** One line of `uamp doctor`. */
export interface Check {
  readonly name: string
  readonly state: State
  /** What was found. */
  readonly found: string
  /** What to do about it. */
  readonly fix?: string
}

export function ok(name: string, found: string): Check {
  return { name, state: 'ok', found }
}

export function note(name: string, found: string, fix: string): Check {
  return { name, state: 'note', found, fix }
}

export function wrong(name: string, found: string, fix: string): Check {
  return { name, state: 'wrong', found, fix }
}

/** Our errors say what is wrong and what to do, with a colon between them. */
export function wrongBy(name: string, thrown: unknown, fix: string): Check {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  const [, found = message, told] = /^(.*?): (.*)$/s.exec(message) ?? []
  return wrong(name, found, told === undefined ? fix : `${told} (${fix})`)
}
