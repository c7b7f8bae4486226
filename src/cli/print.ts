import { inspect, styleText } from 'node:util'
import { showsColors } from '../server/node/log-line.ts'

export type Paint = (format: Parameters<typeof styleText>[0], text: string) => string

/** Adds colours. Node 20 checks the stream for one format, but not for a list of them, so it is checked here for both. */
export function painter(stream: NodeJS.WritableStream, color = showsColors(stream)): Paint {
  return (format, text) => (color ? styleText(format, text, { validateStream: false }) : text)
}

const ESC = '\\u001B'
/** ECMA-48: CSI; OSC, DCS, APC, PM and SOS, which hold a text up to BEL or ST; and the shorter ones. Each also has a C1 character. */
const SEQUENCES = new RegExp(
  [
    `(?:${ESC}\\[|\\u009B)[0-?]*[ -/]*[@-~]`,
    `(?:${ESC}[\\]PX^_]|[\\u0090\\u0098\\u009D-\\u009F])[^\\u0007\\u001B\\u0080-\\u009F]*(?:\\u0007|${ESC}\\\\|\\u009C)`,
    `${ESC}[ -/]*(?![[\\]PX^_])[0-~]`,
  ].join('|'),
  'g',
)
/** Control characters, and those that change the direction of a text, which can disguise it. */
const UNSEEN = /(?![\n\t])\p{Cc}|[\u202A-\u202E\u2066-\u2069]/gu

/** Removes escape sequences. Those of a stranger's server or agent could rewrite the screen, fill the clipboard, or worse. */
export function harmless(text: string): string {
  return text.replaceAll(SEQUENCES, '').replaceAll(UNSEEN, '')
}

/** Prints an error on standard error, and its stack only if UAMP_DEBUG=1. */
export function report(thrown: unknown): void {
  const paint = painter(process.stderr)
  const debug = process.env['UAMP_DEBUG'] === '1'
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  // The message may come from a server.
  process.stderr.write(`${paint('red', 'error:')} ${harmless(debug ? inspect(thrown) : message)}\n`)
}
