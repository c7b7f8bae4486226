import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './child.ts'

/**
 * A block of a document that is more than a picture. Programs are run, and those that call `serve` stay for the blocks below,
 * in place of the server before. Of shell blocks, which may be about anything, only lines of curl are. A comment above a block
 * says more:
 *
 *     <!-- run -->                a shell block, too, is run as a whole
 *     <!-- run: some text -->     and prints this
 *     <!-- serve: say → hear -->  a server that answers the one with the other; of a shell block, `npx uamp serve …`
 *     <!-- serve /ai: … -->       the same, below that path
 *
 * A first line `// name.ts` names the file, so that a later block can import it. `localhost:8787` is the server.
 */
export interface Snippet {
  readonly title: string
  readonly kind: 'run' | 'serve'
  readonly expected: string | undefined
  /** The path that the server's agents are mounted under. */
  readonly below: string
  readonly language: 'ts' | 'js' | 'sh'
  readonly text: string
  readonly file: string
}

const BLOCK =
  /^(?:<!-- (?<kind>run|serve)(?: (?<below>\/[\w-]+))?(?:: (?<expected>.*))? -->\n)?```(?<language>ts|js|sh)\n(?<text>[^]*?)\n```$/gm

export function snippetsOf(document: string): Snippet[] {
  const markdown = readFileSync(join(ROOT, document), 'utf8')
  return [...markdown.matchAll(BLOCK)].flatMap(({ groups, index }, number) => {
    const { kind, expected, below = '', language = 'sh', text: whole = '' } = groups as unknown as Partial<Snippet>
    const text = language === 'sh' && kind === undefined ? whole.replaceAll(/^(?!curl ).*$/gm, '').trim() : whole
    if (text === '') return []
    const title = `${document}:${markdown.slice(0, index).split('\n').length}`
    const named = /^\/\/ ([\w.-]+)\n/.exec(text)?.[1]
    const file = named ?? `snippet-${number}.${language}`
    return [{ title, kind: kind ?? (/\bserve\(/.test(text) ? 'serve' : 'run'), expected, below, language, text, file }]
  })
}
