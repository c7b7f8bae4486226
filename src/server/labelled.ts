/** The most sets of labels that are counted apart. Those beyond are counted together. */
const MOST_SERIES = 1_000
const OTHER = 'other'

type Labels = Readonly<Record<string, string>>

/** Counts under labels. Strangers name some of the labels, so there is a bound. */
export class Labelled<T> {
  readonly names: readonly string[]
  readonly #make: () => T
  readonly #all = new Map<string, { readonly labels: Labels; readonly counted: T }>()

  constructor(names: readonly string[], make: () => T) {
    this.names = names
    this.#make = make
  }

  /** What is counted under these values, in the order of the names. In one text, with a NUL after each but the last: this is in the path of requests. */
  at(values: string): T {
    return this.#all.get(values)?.counted ?? this.#add(values)
  }

  [Symbol.iterator](): Iterator<{ readonly labels: Labels; readonly counted: T }> {
    return this.#all.values()
  }

  #add(values: string): T {
    const others = this.names.map(() => OTHER).join('\0')
    if (this.#all.size >= MOST_SERIES && values !== others) return this.at(others)
    const each = values.split('\0')
    const labels = Object.fromEntries(this.names.map((name, index) => [name, each[index] ?? '']))
    const counted = this.#make()
    this.#all.set(values, { labels, counted })
    return counted
  }
}

/** How often values of each size came. */
export class Sizes {
  /** The upper bounds, in their order. */
  readonly bounds: readonly number[]
  /** How many values are within each bound and beyond the one before; those beyond all bounds are the last. */
  readonly counts: number[]
  sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0)
  }

  observe(value: number): void {
    const { bounds, counts } = this
    let place = 0
    while (place < bounds.length && value > (bounds[place] as number)) place++
    counts[place] = (counts[place] as number) + 1
    this.sum += value
  }
}

/** A number that grows. */
export interface Sum {
  value: number
}
