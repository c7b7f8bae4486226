export interface Range {
  readonly start: number
  /** The first byte after it. */
  readonly end: number
}

/**
 * Which part of `size` bytes a `Range` header asks for (RFC 9110 §14). `undefined`: the whole; also for a header that asks for several
 * parts or makes no sense, which may be ignored. `unsatisfiable`: the part is beyond the end.
 */
export function rangeOf(header: string | null, size: number): Range | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(header?.trim() ?? '') ?? []
  if (first === '' && last === '') return undefined
  if (first === '') return Number(last) === 0 ? 'unsatisfiable' : { start: Math.max(0, size - Number(last)), end: size }
  const start = Number(first)
  const end = last === '' ? size : Math.min(size, Number(last) + 1)
  if (last !== '' && Number(last) < start) return undefined
  return start >= size ? 'unsatisfiable' : { start, end }
}
