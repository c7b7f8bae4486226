import * as z from 'zod/mini'
import { limits } from './limits.ts'

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The fields of what should be an object: of anything else, none. */
export function fieldsOf(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {}
}

/** The objects in what should be an array of them. */
export function recordsIn(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

/**
 * An extension slot (`extensions`, `metadata`, `context` …): an object that is handed on by reference, untouched.
 * Not `z.record`: that copies key by key and leaves out `__proto__`, so the slot would no longer be verbatim.
 */
export const Slot = z.custom<Record<string, unknown>>(isRecord, 'must be an object')
export type Slot = Record<string, unknown>

/** An array of at most `max` entries; a longer one is refused before any entry is looked at. */
export function list<T extends z.core.SomeType>(entry: T, max: number): z.ZodMiniArray<T> {
  return z.array(entry).check(z.maxLength(max))
}

/** Whether there are more than `levels` objects and arrays one inside the other. Looks no deeper, so it cannot overflow the stack. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  for (const member of Object.values(value)) if (isDeeperThan(member, levels - 1)) return true
  return false
}

/** JSON text that is not parsed, because that alone would hold up everybody. The message ends a sentence that names what was sent. */
export class JsonBoundError extends RangeError {
  override readonly name = 'JsonBoundError'
  readonly bound: 'depth' | 'members'
  /** `64 levels` */
  readonly most: string

  constructor(bound: 'depth' | 'members', most: number) {
    super(bound === 'depth' ? `must nest at most ${most} levels of objects and arrays` : `must have at most ${most} members`)
    this.bound = bound
    this.most = `${most} ${bound === 'depth' ? 'levels' : 'members'}`
  }
}

/**
 * What JSON text has too much of: levels, or members in all, which is what it costs to parse it. A member is counted for each comma
 * and each bracket that opens; a string is one, however long. One pass that leaps over strings. Text that is not JSON may give any answer.
 */
export function excessIn(text: string, levels: number): JsonBoundError | undefined {
  if (text.length <= levels) return undefined
  let depth = 0
  let members = 0
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22: // "
        at = endOfString(text, at)
        if (at === -1) return undefined
        break
      case 0x2c: // ,
        members++
        break
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > levels) return new JsonBoundError('depth', levels)
        if (++members > limits.jsonMembers) return new JsonBoundError('members', limits.jsonMembers)
        break
      case 0x5d: // ]
      case 0x7d: // }
        depth--
    }
  }
  return members > limits.jsonMembers ? new JsonBoundError('members', limits.jsonMembers) : undefined
}

/**
 * JSON text of an object with all that is inside its members left out: `{"id":1,"params":{}}`. It tells what a message is that is too
 * much to be parsed. One pass; what is not JSON, or has more objects and arrays than a message has members, gives some text.
 */
export function outlineOf(text: string): string {
  let outline = ''
  let depth = 0
  let from = 0
  let left = OUTLINED
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22: // "
        at = endOfString(text, at)
        if (at === -1) return outline
        break
      case 0x5b: // [
      case 0x7b: // {
        if (++depth !== 2) break
        if (left-- === 0) return outline
        outline += text.slice(from, at + 1)
        break
      case 0x5d: // ]
      case 0x7d: // }
        if (depth-- === 2) from = at
    }
  }
  return depth === 0 ? outline + text.slice(from) : outline
}

/** Objects and arrays in an outline. */
const OUTLINED = 64

/** The closing quote of the string that opens at `open`: the first one with an even number of backslashes before it. */
function endOfString(text: string, open: number): number {
  let quote = text.indexOf('"', open + 1)
  while (quote !== -1) {
    let before = quote
    while (text.charCodeAt(before - 1) === 0x5c) before--
    if ((quote - before) % 2 === 0) return quote
    quote = text.indexOf('"', quote + 1)
  }
  return -1
}

/** Levels of JSON that nobody has a stricter number for: what agents and upstreams say. Nothing sensible comes near it. */
const LEVELS = 512

/**
 * `JSON.parse` for text of a stranger. Nesting and members are counted before anything is parsed: 4 MB of brackets hold up everybody
 * for seconds, and what comes after parsing recurses. Throws a `JsonBoundError` for text that has too much of them, and a
 * `SyntaxError` for what is not JSON.
 */
export function parseJson(text: string, levels: number = LEVELS): unknown {
  const excess = excessIn(text, levels)
  if (excess) throw excess
  return JSON.parse(text)
}

/** Undefined: it is not JSON, or too much of it. */
export function jsonIn(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

export function utf8Length(text: string): number {
  return new TextEncoder().encode(text).length
}

/** `JSON.stringify` of a text. For a short one that is the same in JSON, looking is several times faster. */
export function jsonText(text: string): string {
  return isPlain(text) ? '"' + text + '"' : JSON.stringify(text)
}

function isPlain(text: string): boolean {
  if (text.length > 64) return false
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code < 0x20 || code === 0x22 || code === 0x5c || code >= 0xd800) return false
  }
  return true
}
