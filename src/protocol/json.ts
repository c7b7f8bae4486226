import * as z from 'zod/mini'

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

/** `isDeeperThan` for JSON text: one pass that counts brackets and leaps over strings. Text that is not JSON may give either answer. */
export function isTextDeeperThan(text: string, levels: number): boolean {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22: // "
        at = endOfString(text, at)
        if (at === -1) return false
        break
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > levels) return true
        break
      case 0x5d: // ]
      case 0x7d: // }
        depth--
    }
  }
  return false
}

/**
 * JSON text of an object with all that is inside its members left out: `{"id":1,"params":{}}`. It tells what a message is that nests
 * too deep to be parsed. One pass; text that is not JSON gives some text.
 */
export function outlineOf(text: string): string {
  let outline = ''
  let depth = 0
  let from = 0
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22: // "
        at = endOfString(text, at)
        if (at === -1) return outline
        break
      case 0x5b: // [
      case 0x7b: // {
        if (++depth === 2) outline += text.slice(from, at + 1)
        break
      case 0x5d: // ]
      case 0x7d: // }
        if (depth-- === 2) from = at
    }
  }
  return depth === 0 ? outline + text.slice(from) : outline
}

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
 * `JSON.parse` for text of a stranger. Nesting is checked before anything is parsed: 4 MB of brackets hold up everybody for a
 * second, and what comes after parsing recurses. Throws a `RangeError` for text that nests too deep, and a `SyntaxError` for what
 * is not JSON.
 */
export function parseJson(text: string, levels: number = LEVELS): unknown {
  if (text.length > levels && isTextDeeperThan(text, levels)) throw new RangeError(`JSON must nest at most ${levels} levels`)
  return JSON.parse(text)
}

/** Undefined: it is not JSON, or nests too deep. */
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
