/** The known name that a misspelt one most likely stands for; undefined if none is near. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const most = Math.max(1, Math.floor(name.length / 3))
  let [found, least]: [string | undefined, number] = [undefined, most + 1]
  for (const each of known) {
    const distance = steps(name.toLowerCase(), each.toLowerCase())
    if (distance < least) [found, least] = [each, distance]
  }
  return found
}

/** Ends a message about an unknown name. */
export function didYouMean(name: string, known: Iterable<string>): string {
  const near = nearest(name, known)
  return near === undefined ? '' : `: did you mean "${near}"?`
}

/** Longer names are no typos of ours, and would take long to compare. */
const LONGEST = 64

/** How many letters to insert, remove, replace or swap with their neighbour to get from one name to another. */
function steps(from: string, to: string): number {
  if (from.length > LONGEST || to.length > LONGEST) return from === to ? 0 : LONGEST
  let [before, last]: [number[], number[]] = [[], Array.from({ length: to.length + 1 }, (_, at) => at)]
  for (let i = 1; i <= from.length; i++) {
    const row = [i]
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1]
      let least = Math.min(cell(last, j) + 1, cell(row, j - 1) + 1, cell(last, j - 1) + (same ? 0 : 1))
      if (from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]) least = Math.min(least, cell(before, j - 2) + 1)
      row.push(least)
    }
    ;[before, last] = [last, row]
  }
  return cell(last, to.length)
}

function cell(row: readonly number[], at: number): number {
  return row[at] ?? Infinity
}
