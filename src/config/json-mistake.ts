const TOKEN =
  /\s*(?:([{}[\],:])|("(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null))/uy

type Wants = 'value' | 'key or }' | 'key' | ':' | ', or }' | ', or ]' | 'value or ]' | 'the end'

/** Where a text stops being JSON, and what is expected there. Engines word this differently, or do not say it. */
export function jsonMistake(text: string): { readonly offset: number; readonly wants: Wants } | undefined {
  const open: ('{' | '[')[] = []
  const pattern = new RegExp(TOKEN)
  let wants: Wants = 'value'
  const after = (): Wants => (open.length === 0 ? 'the end' : open.at(-1) === '{' ? ', or }' : ', or ]')
  for (;;) {
    const before = pattern.lastIndex
    const match = pattern.exec(text)
    if (!match) {
      const rest = /\S/.exec(text.slice(before))
      if (!rest && wants === 'the end') return undefined
      return { offset: rest ? before + rest.index : text.trimEnd().length, wants }
    }
    const [whole, mark, string] = match
    const mistake = { offset: before + whole.search(/\S/), wants }
    const next = step({ mark, string: string !== undefined, wants, open, after })
    if (next === undefined) return mistake
    wants = next
  }
}

interface Step {
  readonly mark: string | undefined
  readonly string: boolean
  readonly wants: Wants
  readonly open: ('{' | '[')[]
  readonly after: () => Wants
}

/** What is expected after a token; undefined if the token was not expected. */
function step({ mark, string, wants, open, after }: Step): Wants | undefined {
  const value = wants === 'value' || wants === 'value or ]'
  switch (mark) {
    case '{':
    case '[':
      if (!value) return undefined
      open.push(mark)
      return mark === '{' ? 'key or }' : 'value or ]'
    case '}':
      if (wants !== 'key or }' && wants !== ', or }') return undefined
      open.pop()
      return after()
    case ']':
      if (wants !== 'value or ]' && wants !== ', or ]') return undefined
      open.pop()
      return after()
    case ',':
      return wants === ', or }' ? 'key' : wants === ', or ]' ? 'value' : undefined
    case ':':
      return wants === ':' ? 'value' : undefined
    default:
      if (string && (wants === 'key' || wants === 'key or }')) return ':'
      return value ? after() : undefined
  }
}
