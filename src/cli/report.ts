import { inspect } from 'node:util'
import { harmless, painter } from './print.ts'

/** Says what went wrong on standard error; where in the code it did, only to those who ask. */
export function report(thrown: unknown): void {
  const paint = painter(process.stderr)
  const debug = process.env['UAMP_DEBUG'] === '1'
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  // It may be a server's own words.
  process.stderr.write(`${paint('red', 'error:')} ${harmless(debug ? inspect(thrown) : message)}\n`)
}
