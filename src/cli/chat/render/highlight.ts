import type { Paint } from '../../print.ts'

type Kind = 'comment' | 'string' | 'number' | 'word'

const WORDS = new Set(
  (
    'abstract and as async await begin bool boolean break case catch chan char class const continue def default defer del do done double ' +
    'echo elif else end enum esac except exec export extends false fi final finally float fn for from func function global go goto if ' +
    'impl implements import in include instanceof int interface is lambda let long loop match mod module mut namespace new nil None not ' +
    'null of or override package pass private protected pub public raise readonly require return select self short signed static string ' +
    'struct super switch template then this throw trait true True try type typedef typeof undefined union unsafe unsigned until use using ' +
    'var virtual void volatile where while with yield False SELECT FROM WHERE INSERT INTO UPDATE DELETE CREATE TABLE JOIN ON GROUP ORDER ' +
    'BY LIMIT VALUES SET AND OR NOT NULL'
  ).split(' '),
)
const HASH = /^(py|python|sh|bash|zsh|shell|console|rb|ruby|ya?ml|toml|r|perl|make|makefile|docker|dockerfile|conf|ini|elixir|ex)$/
const DASH = /^(sql|lua|haskell|hs|ada)$/
const PLAIN = /^(|text|txt|plain|plaintext|output|log|diff|md|markdown)$/
const FORMATS = { comment: 'dim', string: 'green', number: 'yellow', word: 'magenta' } as const

/** Colours one line of code: comments, strings, numbers and the words that most languages share. */
export function highlight(line: string, language: string, paint: Paint): string {
  const name = language.toLowerCase()
  if (name === 'diff') return paint(line.startsWith('+') ? 'green' : line.startsWith('-') ? 'red' : 'reset', line)
  if (PLAIN.test(name)) return line
  const comment = HASH.test(name) ? '#.*' : DASH.test(name) ? '--.*' : String.raw`\/\/.*|\/\*.*?(?:\*\/|$)|<!--.*?(?:-->|$)`
  const token = new RegExp(
    `(?<comment>${comment})|(?<string>"(?:[^"\\\\]|\\\\.)*"?|'(?:[^'\\\\]|\\\\.)*'|\`(?:[^\`\\\\]|\\\\.)*\`?)|(?<number>\\b\\d[\\w.]*)|(?<word>[A-Za-z_]\\w*)`,
    'g',
  )
  return line.replace(token, (text: string, ...rest: unknown[]) => {
    const kinds = rest.at(-1) as Readonly<Partial<Record<Kind, string>>>
    const kind = (Object.keys(FORMATS) as Kind[]).find((each) => kinds[each] !== undefined)
    if (kind === undefined || (kind === 'word' && !WORDS.has(text))) return text
    return paint(FORMATS[kind], text)
  })
}
