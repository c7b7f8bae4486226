import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Child, ROOT } from './child.ts'
import { snippetsOf, type Snippet } from './snippets.ts'
import { Workspace } from './workspace.ts'

const pagesIn = (folder: string) => readdirSync(join(ROOT, folder)).flatMap((name) => (name.endsWith('.md') ? [`${folder}/${name}`] : []))
const steps = pagesIn('docs/tutorial').toSorted()
const guides = [...pagesIn('docs'), ...steps]
const documents = ['README.md', ...guides]
/** The blocks of a document build on each other; documents do not, but for the steps of the tutorial. */
const stories = [...documents.filter((document) => !steps.includes(document)).map((document) => [document]), steps]
const hasShell = ['bash', 'curl'].every((command) => spawnSync(command, ['--version']).status === 0)

// The longest, so it is begun first.
test.concurrent('the TypeScript in the guide compiles', { timeout: 180_000 }, async ({ expect }) => {
  const workspace = new Workspace()
  const files = guides.flatMap((document, number) => {
    mkdirSync(join(workspace.folder, String(number)))
    const programs = snippetsOf(document).filter(({ language }) => language === 'ts')
    return programs.map(({ text, file }) => workspace.write(text, join(String(number), file)))
  })
  const options = '--noEmit --strict --target es2023 --module nodenext --lib es2023,dom,dom.asynciterable --skipLibCheck --types node'
  const args = [join(ROOT, 'node_modules/typescript/bin/tsc'), ...options.split(' '), ...files]
  const compiler = new Child(process.execPath, args, { cwd: workspace.folder })
  await compiler.exit
  await workspace.close()
  expect(compiler.output).toBe('')
})

for (const story of stories) {
  const snippets = story.flatMap(snippetsOf)
  if (snippets.length === 0) continue
  describe.concurrent(story.join(', '), () => {
    let workspace: Workspace
    beforeAll(() => void (workspace = new Workspace()))
    afterAll(() => workspace.close())

    test.sequential.for(snippets)('$title', async (snippet, { expect, skip }) => {
      if (snippet.language === 'sh' && !hasShell) skip('bash or curl is not on the PATH')
      if (snippet.kind === 'run') expect(await workspace.run(snippet)).toContain(snippet.expected ?? '')
      else await serve(workspace, snippet)
    })
  })
}

async function serve(workspace: Workspace, { text, file, language, below, expected }: Snippet): Promise<void> {
  await (language === 'sh' ? workspace.serveByShell(text) : workspace.serve(text, file, below))
  if (expected === undefined) return
  const [say = '', hear = ''] = expected.split(' → ')
  const response = await fetch(`${workspace.url}${below}/events`, {
    method: 'POST',
    headers: { accept: 'text/event-stream' },
    body: JSON.stringify([{ type: 'session.create' }, { type: 'input.text', text: say }, { type: 'response.create' }]),
  })
  const heard = (await response.text()).matchAll(/"delta":\{"type":"text","text":("(?:[^"\\]|\\.)*")/g)
  expect([...heard].map(([, piece]) => JSON.parse(piece as string) as string).join('')).toContain(hear)
}

test('links lead somewhere', () => {
  const broken = documents.flatMap((document) =>
    [...read(document).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)/g)].flatMap(([, link = '', heading]) => {
      const target = link === '' ? document : join(dirname(document), link)
      const found = existsSync(join(ROOT, target)) && (heading === undefined || headings(target).includes(heading))
      return found ? [] : [`${document}: ${link}${heading === undefined ? '' : `#${heading}`}`]
    }),
  )
  expect(broken).toEqual([])
})

const read = (document: string) => readFileSync(join(ROOT, document), 'utf8')

/** As GitHub names them in links. */
function headings(document: string): string[] {
  return [...read(document).matchAll(/^#+ (.*)$/gm)].map(([, text = '']) =>
    text
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, '')
      .replaceAll(' ', '-'),
  )
}
