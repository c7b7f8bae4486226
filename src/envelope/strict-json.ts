import { envelopeError } from './codes.ts'
import { limits } from '../protocol/limits.ts'
import { isRecord } from '../protocol/records.ts'

/** Levels of objects and arrays in an envelope. */
const LEVELS = 32
/** Names that some readers take for the prototype of an object. */
const PROTOTYPES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])
/** Sorted by UTF-16 units, as RFC 8785 has it, or by UTF-8, such names come in another order. */
const BEYOND_UTF16 = /[\ud800-\udfff]/
const NUMBER = /-?[0-9.eE+-]+/y

/** The object in a message. Throws `4.00` where two readers of JSON could read two things: their signatures would be the same. */
export function strictObject(bytes: Uint8Array | string): Readonly<Record<string, unknown>> {
  const text = typeof bytes === 'string' ? wellFormed(bytes) : decoded(bytes)
  checkText(text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw malformed('The message is not JSON', 'not_json')
  }
  if (!isRecord(value)) throw malformed('The message must be a JSON object', 'not_json')
  // Only an escape can make half a pair now.
  if (text.includes('\\u')) checkPairs(value)
  return value
}

function checkPairs(value: unknown): void {
  if (typeof value === 'string') {
    wellFormed(value)
  } else if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) checkPairs(member)
  }
}

function wellFormed(text: string): string {
  if (!text.isWellFormed()) throw malformed('A text of the message has half of a surrogate pair', 'surrogate')
  return text
}

/** A byte order mark stays in the text, and is no JSON. */
function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw malformed('The message is not UTF-8', 'not_utf8')
  }
}

function tooMany(): Error {
  return envelopeError('4.13', `The message may have at most ${limits.jsonMembers} members`, 'members')
}

function malformed(message: string, reason: string): Error {
  return envelopeError('4.00', message, reason)
}

/**
 * One pass that looks at names and numbers, and skips the contents of other texts. What is not JSON may pass: the parser finds that.
 */
function checkText(text: string): void {
  /** The names so far in each open object; undefined for an open array. */
  const open: (Set<string> | undefined)[] = []
  let members = 0
  /** The next text is the name of a member. */
  let isName = false
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    switch (unit) {
      case 0x22: {
        const end = endOfText(text, at)
        if (isName) {
          checkName(text.slice(at, end + 1), open.at(-1))
          isName = false
        }
        at = end
        break
      }
      case 0x2c: // ,
        isName = open.at(-1) !== undefined
        members++
        break
      case 0x5b: // [
      case 0x7b: // {
        isName = unit === 0x7b
        open.push(isName ? new Set() : undefined)
        if (open.length > LEVELS) throw malformed(`The message may nest at most ${LEVELS} levels of objects and arrays`, 'depth')
        if (++members > limits.jsonMembers) throw tooMany()
        break
      case 0x5d: // ]
      case 0x7d: // }
        open.pop()
        isName = false
        break
      default:
        if (unit === 0x2d || (unit >= 0x30 && unit <= 0x39)) at = checkNumber(text, at)
    }
  }
  if (members > limits.jsonMembers) throw tooMany()
}

/** The closing quote of the text that opens at `quote`. */
function endOfText(text: string, quote: number): number {
  for (let end = text.indexOf('"', quote + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let before = end
    while (text.charCodeAt(before - 1) === 0x5c) before--
    if ((end - before) % 2 === 0) return end
  }
  throw malformed('The message is not JSON', 'not_json')
}

function checkName(quoted: string, names: Set<string> | undefined): void {
  const name = quoted.includes('\\') ? unquoted(quoted) : quoted.slice(1, -1)
  if (PROTOTYPES.has(name)) throw malformed(`"${name}" cannot be the name of a member`, 'prototype')
  if (BEYOND_UTF16.test(name)) throw malformed('The name of a member has a character beyond U+FFFF', 'name')
  if (names?.has(name)) throw malformed('The message has a member twice in one object', 'duplicate')
  names?.add(name)
}

function unquoted(quoted: string): string {
  try {
    return JSON.parse(quoted) as string
  } catch {
    throw malformed('The message is not JSON', 'not_json')
  }
}

/** The last character of the number. Whole numbers must be safe: readers with integers of 64 bits would read others than we do. */
function checkNumber(text: string, at: number): number {
  NUMBER.lastIndex = at
  const written = NUMBER.exec(text)?.[0] ?? '-'
  const value = Number(written)
  if (!Number.isFinite(value)) throw malformed('The message has a number that is too large, or none', 'number')
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) throw malformed('The message has a whole number beyond 2^53', 'number')
  return at + written.length - 1
}
