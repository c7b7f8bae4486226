import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './child.ts'

/**
 * A block of a document that is more than a picture. The comment above it says what becomes of it:
 *
 *     <!-- run -->                a program that must end well
 *     <!-- run: some text -->     and print this
 *     <!-- serve -->              a server for the blocks below, in place of the one before
 *     <!-- serve: say → hear -->  that answers the one with the other
 *
 * A first line `// name.ts` names its file, so that a later block can import it. `localhost:8787` is the server.
 */
export interface Snippet {
  readonly title: string
  readonly kind: 'run' | 'serve'
  readonly expected: string | undefined
  readonly language: 'ts' | 'js' | 'sh'
  readonly text: string
  /** Where it stands among its document's. */
  readonly file: string
}

const BLOCK = /^(?:<!-- (?<kind>run|serve)(?:: (?<expected>.*))? -->\n)?```(?<language>ts|js|sh)\n(?<text>[^]*?)\n```$/gm

export function snippetsOf(document: string): Snippet[] {
  const markdown = readFileSync(join(ROOT, document), 'utf8')
  return [...markdown.matchAll(BLOCK)].flatMap(({ groups, index }, number) => {
    const { kind, expected, language, text = '' } = groups as unknown as Partial<Snippet>
    if (kind === undefined || language === undefined) return []
    const line = markdown.slice(0, index).split('\n').length
    const named = /^\/\/ ([\w.-]+)$/m.exec(text.split('\n')[0] ?? '')?.[1]
    return [{ title: `${document}:${line}`, kind, expected, language, text, file: named ?? `snippet-${number}.${language}` }]
  })
}

/** Programs in the document that nothing runs. */
export function unmarked(document: string): string[] {
  const markdown = readFileSync(join(ROOT, document), 'utf8')
  return [...markdown.matchAll(BLOCK)].flatMap(({ groups, index }) =>
    groups?.['kind'] === undefined && groups?.['language'] !== 'sh' ? [`${document}:${markdown.slice(0, index).split('\n').length}`] : [],
  )
}
