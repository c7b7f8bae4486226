// @ts-check
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { filesBelow } from '../build.js'
import { navigation } from './navigation.js'
import { asReadme, readPage } from './pages.js'
import { searchIndex } from './search-index.js'
import { document } from './template.js'

const ASSETS = fileURLToPath(new URL('assets', import.meta.url))

/**
 * Writes the pages of `docs/`, and of everything in the project that they link to, into a folder.
 *
 * @param {string} root @param {string} folder @returns {Promise<{ pages: number, bytes: number }>}
 */
export async function writeSite(root, folder) {
  const documents = filesBelow(join(root, 'docs'))
    .map((file) => relative(root, file).replaceAll('\\', '/'))
    .filter((file) => file.endsWith('.md'))
    .toSorted()
  const pages = readAll(root, documents)
  const groups = navigation(documents).map(({ name, pages: paths }) => ({ name, pages: paths.flatMap((path) => pages.get(path) ?? []) }))
  const { version } = /** @type {{ version: string }} */ (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')))

  const files = [...pages.values()].map((page) => ({ name: page.file, text: document(page, { groups, version }) }))
  files.push({ name: 'assets/search-index.js', text: searchIndex([...pages.values()]) })
  rmSync(folder, { recursive: true, force: true })
  for (const { name, text } of files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  cpSync(ASSETS, join(folder, 'assets'), { recursive: true })
  return { pages: pages.size, bytes: files.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0) }
}

/** @param {string} root @param {readonly string[]} documents @returns {Map<string, import('./pages.js').Page>} by the path of their source */
function readAll(root, documents) {
  /** @type {Map<string, import('./pages.js').Page>} */
  const pages = new Map()
  const waiting = [...documents]
  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    const source = asReadme(root, posix.normalize(path))
    if (pages.has(source)) continue
    const page = readPage(root, source)
    pages.set(source, page)
    waiting.push(...page.links)
  }
  return pages
}
