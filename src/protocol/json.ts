import * as z from 'zod/mini'
import { limits } from './limits.ts'
import { isRecord } from './records.ts'

export { fieldsOf, isRecord, recordsIn, uampIn } from './records.ts'

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/**
 * An extension slot (`extensions`, `metadata`, `context` …): an object that passes by reference, unchanged. `z.record` would copy it key
 * by key, and leave out `__proto__`.
 */
export const Slot = z.custom<Record<string, unknown>>(isRecord, 'must be an object')
export type Slot = Record<string, unknown>

/** An array of at most `max` entries. A longer one is refused before any entry is checked. */
export function list<T extends z.core.SomeType>(entry: T, max: number): z.ZodMiniArray<T> {
  return z.array(entry).check(z.maxLength(max))
}

/** True if objects and arrays nest deeper than `levels`. Looks no deeper than that, so it cannot overflow the stack. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  for (const member of Object.values(value)) if (isDeeperThan(member, levels - 1)) return true
  return false
}

/** For JSON text that would block the process if it were parsed. The message ends a sentence that names what was sent. */
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
 * The bound that JSON text exceeds: its levels, or its members, which decide what parsing costs. Counts a member for each comma and each
 * opening bracket. One pass that skips strings. Text that is not JSON may give any result.
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
 * The JSON text of an object without the contents of its members: `{"id":1,"params":{}}`. It identifies a message that is too large to
 * parse. One pass. Text that is not JSON, or has too many objects and arrays, gives some text.
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

/** The most objects and arrays in an outline. */
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

/** The default bound on levels of JSON, for agents and upstream servers. Nothing sensible comes near it. */
const LEVELS = 512

/**
 * `JSON.parse` for text of a stranger. Counts levels and members first: 4 MB of brackets would block the process for seconds, and later
 * code recurses. Throws a `JsonBoundError` beyond the bounds, and a `SyntaxError` if the text is not JSON.
 */
export function parseJson(text: string, levels: number = LEVELS): unknown {
  const excess = excessIn(text, levels)
  if (excess) throw excess
  return JSON.parse(text)
}

/** Undefined if the text is not JSON, or beyond the bounds. */
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

/** `JSON.stringify` of a text, several times faster for a short one without escapes. */
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
