import { styleText } from 'node:util'

export type Paint = (format: Parameters<typeof styleText>[0], text: string) => string

/** Colours where the stream shows them: Node looks at the terminal, NO_COLOR and FORCE_COLOR. */
export function painter(stream: NodeJS.WritableStream, color = true): Paint {
  return (format, text) => (color ? styleText(format, text, { stream }) : text)
}

const ESC = '\\u001B'
/** ECMA-48: CSI; OSC, DCS, APC, PM and SOS, which hold a text up to BEL or ST; and the shorter ones. Each also as one character of C1. */
const SEQUENCES = new RegExp(
  [
    `(?:${ESC}\\[|\\u009B)[0-?]*[ -/]*[@-~]`,
    `(?:${ESC}[\\]PX^_]|[\\u0090\\u0098\\u009D-\\u009F])[^\\u0007\\u001B\\u0080-\\u009F]*(?:\\u0007|${ESC}\\\\|\\u009C)`,
    `${ESC}[ -/]*(?![[\\]PX^_])[0-~]`,
  ].join('|'),
  'g',
)
/** Control characters, and those that turn the direction of a text: they can make it read as something else. */
const UNSEEN = /(?![\n\t])\p{Cc}|[\u202A-\u202E\u2066-\u2069]/gu

/** Servers and agents are strangers: an escape sequence of theirs could rewrite the screen, fill the clipboard, or worse. */
export function harmless(text: string): string {
  return text.replaceAll(SEQUENCES, '').replaceAll(UNSEEN, '')
}
