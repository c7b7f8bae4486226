import { parseCursor } from '../core/basics/store-key.ts'

type Place = readonly [sort: string, key: string]

/** Most entries in one piece: an insertion moves only the rest of its piece, not the whole index. */
const PIECE = 512

/** The keys of one index, sorted by sort key and then by key. */
export class SortedKeys {
  /** Each piece is sorted and not empty, and comes before all of the next. */
  readonly #pieces: Place[][] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  /** How many entries have this sort key or a higher one. */
  countFrom(sort: string): number {
    const { piece, at } = this.#search([sort, ''])
    let before = at
    for (const { length } of this.#pieces.slice(0, piece)) before += length
    return this.#size - before
  }

  add(sort: string, key: string): void {
    const place: Place = [sort, key]
    const { piece, at } = this.#search(place)
    const places = this.#pieces[piece]
    if (places) places.splice(at, 0, place)
    else this.#pieces.push([place])
    this.#size++
    if (places && places.length > PIECE) this.#pieces.splice(piece + 1, 0, places.splice(PIECE / 2))
  }

  remove(sort: string, key: string): void {
    const { piece, at } = this.#search([sort, key])
    const places = this.#pieces[piece]
    if (!places || places.splice(at, 1).length === 0) return
    this.#size--
    if (places.length === 0) this.#pieces.splice(piece, 1)
  }

  /** The keys after a cursor, each with a cursor of its own. */
  *walk(after: string | undefined, descending: boolean): Generator<{ readonly key: string; readonly cursor: string }> {
    const step = descending ? -1 : 1
    let { piece, at } = this.#start(after, descending)
    for (let places = this.#pieces[piece]; places; places = this.#pieces[(piece += step)]) {
      for (at = at < 0 ? places.length - 1 : at; at >= 0 && at < places.length; at += step) {
        const place = places[at] as Place
        yield { key: place[1], cursor: JSON.stringify(place) }
      }
      at = descending ? -1 : 0
    }
  }

  /** `at` below 0 means the end of the piece. */
  #start(after: string | undefined, descending: boolean): Spot {
    if (after === undefined) return descending ? { piece: this.#pieces.length - 1, at: -1 } : { piece: 0, at: 0 }
    const cursor = parseCursor(after)
    const { piece, at } = this.#search(cursor)
    if (descending) return at > 0 ? { piece, at: at - 1 } : { piece: piece - 1, at: -1 }
    const found = this.#pieces[piece]?.[at]
    return { piece, at: found && compare(found, cursor) === 0 ? at + 1 : at }
  }

  /** The spot of the first entry that is not before this one, which is also where to insert it. */
  #search(place: Place): Spot {
    const pieces = this.#pieces
    const last = pieces.at(-1)
    // Most entries are newer than all others, so try the end first.
    if (last && compare(last.at(-1) as Place, place) < 0) return { piece: pieces.length - 1, at: last.length }
    const piece = Math.max(0, lowerBound(pieces, ([first]) => compare(first as Place, place) <= 0) - 1)
    return { piece, at: lowerBound(pieces[piece] ?? [], (other) => compare(other, place) < 0) }
  }
}

interface Spot {
  readonly piece: number
  readonly at: number
}

/** The number of items at the front for which `before` holds. */
export function lowerBound<T>(items: readonly T[], before: (item: T) => boolean): number {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (before(items[middle] as T)) low = middle + 1
    else high = middle
  }
  return low
}

function compare(a: Place, b: Place): number {
  return compareText(a[0], b[0]) || compareText(a[1], b[1])
}

/** Without surrogates, `<` gives the order by code point, and is many times faster than our own comparison. */
const PLAIN = /^[\0-\ud7ff\ue000-\uffff]*$/

/** Compares by code point, as databases do; `<` compares UTF-16 units, and so puts an emoji before U+FF5E. */
function compareText(a: string, b: string): number {
  if (a === b) return 0
  if (PLAIN.test(a) && PLAIN.test(b)) return a < b ? -1 : 1
  for (let at = 0; at < a.length && at < b.length; at++) {
    if (a.charCodeAt(at) !== b.charCodeAt(at)) return rank(a.charCodeAt(at)) - rank(b.charCodeAt(at))
  }
  return a.length - b.length
}

/** Surrogates stand for code points above every other unit. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}
