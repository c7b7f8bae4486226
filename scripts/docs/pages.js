// @ts-check
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, extname, join, posix } from 'node:path'
import { Marked } from 'marked'
import { escape, highlight } from './highlight.js'

/**
 * @typedef {{ id: string, depth: number, title: string, text: string }} Section a heading and the text below it
 * @typedef {{ path: string, file: string, title: string, html: string, sections: Section[], links: string[] }} Page
 */

/** @param {string} path of a source, from the root of the project @returns {string} where its page is in the site */
function fileOf(path) {
  const inside = path.startsWith('docs/') ? path.slice('docs/'.length) : posix.join('project', path)
  if (path === 'docs') return 'index.html'
  if (/(^|\/)README\.md$/.test(inside)) return inside.replace(/README\.md$/, 'index.html')
  return extname(path) === '.md' ? inside.replace(/\.md$/, '.html') : `${inside}/index.html`
}

/** @param {string} from file of the site @param {string} to file of the site */
export const linkBetween = (from, to) => posix.relative(posix.dirname(from), to)

/** Ids as GitHub makes them, the second of the same name with a number. */
function slugs() {
  /** @type {Map<string, number>} */
  const seen = new Map()
  return (/** @type {string} */ title) => {
    const slug = title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-')
    const count = seen.get(slug) ?? 0
    seen.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  }
}

/** @param {string} html */
const plain = (html) =>
  html
    .replaceAll(/<svg[^]*?<\/svg>/g, ' ')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
    .replaceAll(/\s+/g, ' ')
    .trim()

/**
 * Makes a page of a Markdown file, of any other file, or of a folder. Links lead to the pages of what they name; `links` has these
 * sources, so that the site can hold them too.
 *
 * @param {string} root @param {string} path @returns {Page}
 */
export function readPage(root, path) {
  const file = fileOf(path)
  const markdown = sourceOf(root, path)
  /** @type {Section[]} */
  const sections = []
  /** @type {Set<string>} */
  const links = new Set()
  const slug = slugs()
  // A README stands for its folder.
  const folder = statSync(join(root, path)).isDirectory() ? path : posix.dirname(path)

  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }) {
        const html = this.parser.parseInline(tokens)
        const title = plain(html)
        const id = slug(title)
        sections.push({ id, depth, title, text: '' })
        const anchor = depth === 1 ? '' : ` <a class="anchor" href="#${id}" aria-label="Link to this heading">#</a>`
        return `<h${depth} id="${id}">${html}${anchor}</h${depth}>\n`
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens)
        if (/^[a-z]+:/.test(href)) return `<a href="${escape(href)}" rel="noreferrer">${text}</a>`
        const [target = '', hash] = href.split('#')
        if (target === '') return `<a href="#${hash}">${text}</a>`
        const source = posix.join(folder, target).replace(/\/$/, '')
        if (!existsSync(join(root, source))) throw new Error(`${path}: there is no ${source}`)
        links.add(source)
        return `<a href="${linkBetween(file, fileOf(asReadme(root, source)))}${hash === undefined ? '' : `#${hash}`}">${text}</a>`
      },
      code({ text, lang = '' }) {
        return `<pre tabindex="0"><code>${highlight(text, lang)}</code></pre>\n`
      },
      image({ href, text }) {
        // In the page itself, so that it takes part in the choice of light or dark.
        const drawing = readFileSync(join(root, folder, href), 'utf8').replace('<svg ', `<svg role="img" aria-label="${escape(text)}" `)
        return `<figure>${drawing}</figure>`
      },
      paragraph({ tokens }) {
        const html = this.parser.parseInline(tokens)
        return html.startsWith('<figure>') ? html : `<p>${html}</p>\n`
      },
      html({ text }) {
        return text.replaceAll(/<!--[^]*?-->/g, '').trim() === '' ? '' : escape(text)
      },
    },
  })
  const html = marked
    .parse(markdown, { async: false })
    .replaceAll('<table>', '<div class="table" tabindex="0"><table>')
    .replaceAll('</table>', '</table></div>')

  const parts = html.split(/<h[1-6] id="[^"]*">[^]*?<\/h[1-6]>/)
  sections.forEach((section, index) => (section.text = plain(parts[index + 1] ?? '')))
  return { path, file, title: sections[0]?.title ?? basename(path), html, sections, links: [...links] }
}

/** @param {string} root @param {string} path @returns {string} the README of a folder that has one */
export function asReadme(root, path) {
  return existsSync(join(root, path, 'README.md')) ? `${path}/README.md` : path
}

/** @param {string} root @param {string} path @returns {string} Markdown */
function sourceOf(root, path) {
  const place = join(root, path)
  if (statSync(place).isDirectory()) return folderAsMarkdown(root, path)
  const text = readFileSync(place, 'utf8')
  return extname(path) === '.md' ? text : `# ${path}\n\n${fenced(text, path)}`
}

/** @param {string} root @param {string} path */
function folderAsMarkdown(root, path) {
  const names = readdirSync(join(root, path)).filter((name) => statSync(join(root, path, name)).isFile())
  const documents = names.filter((name) => name.endsWith('.md'))
  if (documents.length > 0) {
    const title = posix.basename(path).replace(/^./, (letter) => letter.toUpperCase())
    return `# ${title}\n\n${documents.map((name) => `- [${titleOf(join(root, path, name))}](${name})`).join('\n')}\n`
  }
  return `# ${path}\n\n${names.map((name) => `## ${name}\n\n${fenced(readFileSync(join(root, path, name), 'utf8'), name)}`).join('\n\n')}`
}

/** @param {string} text @param {string} name */
const fenced = (text, name) => `\`\`\`\`${extname(name).slice(1)}\n${text.trimEnd()}\n\`\`\`\``

/** @param {string} file */
const titleOf = (file) => /^# (.*)$/m.exec(readFileSync(file, 'utf8'))?.[1] ?? basename(file)
