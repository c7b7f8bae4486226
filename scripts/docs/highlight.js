// @ts-check

const WORDS =
  'as async await break case catch class const continue default do else enum export extends false finally for from function if implements import in instanceof interface let new null of private readonly return satisfies static super switch this throw true try type typeof undefined var void while yield'
const STRING = String.raw`'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"`

/** What each language colours: comments, strings, and words. The first group that fits decides. @type {Readonly<Record<string, RegExp>>} */
const LANGUAGES = {
  js: new RegExp(
    String.raw`(?<comment>(?<![:'"\x60])//[^\n]*|/\*[^]*?\*/)|(?<string>${STRING}|\x60(?:[^\x60\\]|\\.)*\x60)|(?<word>(?<![.\w])(?:${WORDS.replaceAll(' ', '|')})\b(?!\s*:))`,
    'g',
  ),
  sh: new RegExp(
    String.raw`(?<comment>(?<=^|\s)#[^\n]*)|(?<string>'[^']*'|"(?:[^"\\]|\\.)*")|(?<word>(?<=^|\n|[|&;] )(?:npm|npx|node|curl|uamp|docker|export|cd|mkdir|chmod|printf|systemctl|sudo|cp)\b)`,
    'g',
  ),
  yaml: new RegExp(String.raw`(?<comment>(?<=^|\s)#[^\n]*)|(?<string>${STRING})|(?<word>(?<=^|\n)[ -]*[\w.-]+(?=:))`, 'g'),
  json: new RegExp(String.raw`(?<word>"(?:[^"\\\n]|\\.)*"(?=\s*:))|(?<string>"(?:[^"\\\n]|\\.)*")|(?<comment>(?!))`, 'g'),
}
/** @type {Readonly<Record<string, string>>} */
const ALIASES = { ts: 'js', tsx: 'js', jsx: 'js', javascript: 'js', typescript: 'js', bash: 'sh', yml: 'yaml' }

/** @param {string} text */
export const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/** @param {string} text @param {string} language @returns {string} HTML */
export function highlight(text, language) {
  const pattern = LANGUAGES[ALIASES[language] ?? language]
  if (!pattern) return escape(text)
  let html = ''
  let at = 0
  for (const { 0: found, index, groups = {} } of text.matchAll(pattern)) {
    const kind = Object.keys(groups).find((name) => groups[name] !== undefined)
    html += `${escape(text.slice(at, index))}<span class="${kind}">${escape(found)}</span>`
    at = index + found.length
  }
  return html + escape(text.slice(at))
}
