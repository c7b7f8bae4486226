import { UampError } from '../protocol/errors.ts'

type Place = readonly [sort: string, key: string]

/** The keys of one index, by sort key and then by key. */
export class SortedKeys {
  readonly #places: Place[] = []

  get size(): number {
    return this.#places.length
  }

  /** How many have this sort key or one above. */
  countFrom(sort: string): number {
    return this.size - this.#search([sort, ''])
  }

  add(sort: string, key: string): void {
    this.#places.splice(this.#search([sort, key]), 0, [sort, key])
  }

  remove(sort: string, key: string): void {
    this.#places.splice(this.#search([sort, key]), 1)
  }

  /** The keys behind a cursor, each with the cursor that stands on it. */
  *walk(after: string | undefined, descending: boolean): Generator<{ readonly key: string; readonly cursor: string }> {
    const step = descending ? -1 : 1
    for (let at = this.#start(after, descending); ; at += step) {
      const place = this.#places[at]
      if (!place) return
      yield { key: place[1], cursor: JSON.stringify(place) }
    }
  }

  #start(after: string | undefined, descending: boolean): number {
    if (after === undefined) return descending ? this.#places.length - 1 : 0
    const cursor = parseCursor(after)
    const at = this.#search(cursor)
    if (descending) return at - 1
    const found = this.#places[at]
    return found && compare(found, cursor) === 0 ? at + 1 : at
  }

  #search(place: Place): number {
    return lowerBound(this.#places, (other) => compare(other, place) < 0)
  }
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

function parseCursor(after: string): Place {
  try {
    const [sort, key] = JSON.parse(after) as unknown[]
    if (typeof sort === 'string' && typeof key === 'string') return [sort, key]
  } catch {}
  throw new UampError('invalid_request', 'The cursor is not one of this list')
}

function compare(a: Place, b: Place): number {
  return compareText(a[0], b[0]) || compareText(a[1], b[1])
}

/** By code point, as databases do; `<` compares UTF-16 units, and so puts an emoji before U+FF5E. */
function compareText(a: string, b: string): number {
  if (a === b) return 0
  for (let at = 0; at < a.length && at < b.length; at++) {
    if (a.charCodeAt(at) !== b.charCodeAt(at)) return rank(a.charCodeAt(at)) - rank(b.charCodeAt(at))
  }
  return a.length - b.length
}

/** Surrogates stand for code points above every other unit. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}
