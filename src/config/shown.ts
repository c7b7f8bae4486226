import { relative } from 'node:path'

/** The path as people would type it. */
export function shown(file: string): string {
  const short = relative('', file)
  return short.startsWith('..') || short === '' ? file : short
}
