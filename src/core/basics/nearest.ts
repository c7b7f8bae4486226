/** The most mistakes in a name that is still taken for another. */
const MISTAKES = 3
/** Longer names are not compared: the work grows with the square of the length. */
const LENGTH = 64

/** The known name that a mistyped one is nearest to; undefined if it is near none. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  let [best, least] = [undefined as string | undefined, Math.min(MISTAKES, Math.floor(name.length / 2)) + 1]
  if (name.length > LENGTH) return undefined
  for (const other of known) {
    const mistakes = distance(name.toLowerCase(), other.toLowerCase())
    if (mistakes < least) [best, least] = [other, mistakes]
  }
  return best
}

/** How many letters have to be changed, added or removed. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
