import { refused } from './errors.ts'

/** RFC 6749 §3.3, and a bound for each word. */
const WORD = /^[!#-[\]-~]{1,128}$/
const MOST_WORDS = 64

/** What a word includes beside itself, and beside what it begins, as `tools:*` does. */
const INCLUDES: Readonly<Record<string, readonly string[]>> = {
  write: ['call', 'tool', 'read', 'cancel', 'content', 'room', 'pay', 'tools:*'],
  call: ['read', 'cancel', 'content'],
  tool: ['tools:*'],
  host: ['host:*'],
}

/** What a server says that it has (RFC 8414). */
export const SCOPES = [
  'read',
  'write',
  'admin',
  'call',
  'tool',
  'tools:*',
  'cancel',
  'content',
  'room',
  'pay',
  'bank',
  'operate',
  'host',
  'platform',
]

/** The words of a `scope`. */
export function wordsIn(scope: string): readonly string[] {
  const words = [...new Set(scope.split(' ').filter((word) => word !== ''))]
  if (words.length > MOST_WORDS || !words.every((word) => WORD.test(word))) throw refused('invalid_scope', 'The scope is malformed')
  return words
}

/** True if somebody who has these words has this one. */
export function covers(words: readonly string[], asked: string): boolean {
  return words.some((word) => includes(word, asked) || (INCLUDES[word] ?? []).some((each) => includes(each, asked)))
}

function includes(word: string, asked: string): boolean {
  if (word === asked || word === 'admin') return true
  // `tools:*`, and `host:team.*`
  return /[:.]\*$/.test(word) && asked.startsWith(word.slice(0, -1))
}

/** The words that are granted to somebody who has some and asks for some; undefined: asks for all. Throws rather than grant less. */
export function granted(have: readonly string[], asked: readonly string[] | undefined): readonly string[] {
  const missing = asked?.find((word) => !covers(have, word))
  if (missing !== undefined) throw refused('invalid_scope', `The scope ${missing} is not granted. What is: ${have.join(' ') || 'nothing'}`)
  return asked ?? have
}
