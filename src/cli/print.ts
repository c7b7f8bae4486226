import { styleText } from 'node:util'

export type Paint = (format: Parameters<typeof styleText>[0], text: string) => string

/** Colours where the stream shows them: Node looks at the terminal, NO_COLOR and FORCE_COLOR. */
export function painter(stream: NodeJS.WritableStream, color = true): Paint {
  return (format, text) => (color ? styleText(format, text, { stream }) : text)
}

/** Agents are strangers: an escape sequence of theirs could rewrite the screen, or worse. */
export function harmless(text: string): string {
  return text.replaceAll(/(?![\n\t])\p{Cc}/gu, '')
}
