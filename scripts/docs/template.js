// @ts-check
import { escape } from './highlight.js'
import { linkBetween } from './pages.js'

/**
 * @typedef {import('./pages.js').Page} Page
 * @typedef {{ name: string, pages: Page[] }} Group
 * @typedef {{ groups: readonly Group[], version: string }} Site
 */

/** Pages of a group beyond this many are folded. */
const FOLDED = 25

/** @param {Page} page @param {Site} site @returns {string} */
export function document(page, { groups, version }) {
  const to = (/** @type {string} */ file) => linkBetween(page.file, file)
  const home = page.file === 'index.html'
  const title = home ? 'uamp: write an agent once, every protocol can talk to it' : `${page.title} · uamp`
  return `<!doctype html>
<html lang="en" data-root="${to('assets/..')}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${to('assets/site.css')}">
<script src="${to('assets/site.js')}"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the text</a>
<header>
<button class="menu" type="button" aria-expanded="false" aria-controls="navigation">Menu</button>
<a class="brand" href="${to('index.html')}">uamp <small>${escape(version)}</small></a>
<div class="search" role="search">
<input type="search" placeholder="Search (press /)" aria-label="Search the documentation" autocomplete="off" spellcheck="false" aria-controls="results">
<ul id="results" hidden></ul>
</div>
<button class="theme" type="button" aria-label="Light or dark">◐</button>
</header>
<div class="columns">
<nav id="navigation" aria-label="Pages">
${groups.map((group) => groupOf(group, page, to)).join('\n')}
</nav>
<main id="content">
${page.html}
${neighbours(page, groups, to)}
</main>
${contents(page)}
</div>
</body>
</html>
`
}

/** @param {Group} group @param {Page} page @param {(file: string) => string} to */
function groupOf({ name, pages }, page, to) {
  const items = pages.map(
    (one) => `<li><a href="${to(one.file)}"${one === page ? ' aria-current="page"' : ''}>${escape(one.title)}</a></li>`,
  )
  const open = pages.length <= FOLDED || pages.includes(page)
  return `<details${open ? ' open' : ''}><summary>${name}</summary><ul>${items.join('')}</ul></details>`
}

/** @param {Page} page @returns {string} the headings of the page */
function contents({ sections }) {
  const shown = sections.filter(({ depth }) => depth === 2 || depth === 3)
  if (shown.length < 2) return '<aside></aside>'
  const items = shown.map(({ id, depth, title }) => `<li class="depth-${depth}"><a href="#${id}">${escape(title)}</a></li>`)
  return `<aside aria-label="On this page"><p>On this page</p><ul>${items.join('')}</ul></aside>`
}

/** @param {Page} page @param {readonly Group[]} groups @param {(file: string) => string} to */
function neighbours(page, groups, to) {
  const order = groups.flatMap(({ pages }) => pages)
  const at = order.indexOf(page)
  if (at < 0) return ''
  const link = (/** @type {Page | undefined} */ one, /** @type {string} */ kind) =>
    one ? `<a class="${kind}" href="${to(one.file)}"><small>${kind}</small>${escape(one.title)}</a>` : '<span></span>'
  return `<footer>${link(order[at - 1], 'previous')}${link(order[at + 1], 'next')}</footer>`
}
