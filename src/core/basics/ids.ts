/** The largest number that fits into the three hex digits behind the version. */
const COUNT_MAX = 0xfff

/**
 * Makes ids that nobody can guess and that sort in the order they were made (RFC 9562, UUID version 7, method 1), even within a
 * millisecond or after the clock was set back. Records of the same time then lie side by side in the store.
 */
export function timeOrderedIds(now: () => number): () => string {
  let last = 0
  let count = 0
  let head = ''
  const next = (time: number, from: number): void => {
    const hex = time.toString(16).padStart(12, '0')
    head = `${hex.slice(0, 8)}-${hex.slice(8)}-7`
    last = time
    count = from
  }
  return () => {
    const random = crypto.randomUUID()
    const time = now()
    // The count begins in the lower half, so that there is room to count up.
    if (time > last) next(time, Number.parseInt(random.slice(15, 18), 16) & (COUNT_MAX >> 1))
    else if (++count > COUNT_MAX) next(last + 1, 0)
    return head + count.toString(16).padStart(3, '0') + random.slice(18)
  }
}
