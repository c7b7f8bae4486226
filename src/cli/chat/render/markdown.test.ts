import { expect, test } from 'vitest'
import { Flow } from './flow.ts'
import { Markdown } from './markdown.ts'
import { widthOf } from './width.ts'

interface Options {
  readonly columns?: number
  readonly plain?: boolean
  /** How many characters come at a time. */
  readonly size?: number
}

/** Formats are shown as `<bold>…</>`. */
function shown(text: string, { columns = 80, plain = false, size = 1 }: Options = {}): string {
  let page = ''
  const flow = new Flow(
    (piece) => (page += piece),
    () => columns,
  )
  const markdown = new Markdown({ flow, plain, paint: (format, piece) => `<${String(format)}>${piece}</>` })
  for (let at = 0; at < text.length; at += size) markdown.write(text.slice(at, at + size))
  markdown.end()
  return page
}

const CASES: readonly (readonly [what: string, source: string, shown: string])[] = [
  ['text', 'Hello, you.', 'Hello, you.'],
  ['lines', 'one\ntwo\n\nthree', 'one\ntwo\n\nthree'],
  ['bold', 'a **b c** d', 'a <bold>b</> <bold>c</> d'],
  ['bold at the start', '**b** d', '<bold>b</> d'],
  ['italic', 'an *i* and _j_.', 'an <italic>i</> and <italic>j</>.'],
  ['both', '***x***', '<bold,italic>x</>'],
  ['inside', '**a `b` c**', '<bold>a</> <bold,cyan>b</> <bold>c</>'],
  ['a word in two formats', 'pre**fix**ed', 'pre<bold>fix</>ed'],
  ['code', 'run `npm *i* x` now', 'run <cyan>npm</> <cyan>*i*</> <cyan>x</> now'],
  ['code with a backtick', '``a`b``', '<cyan>a`b</>'],
  ['no marks: a product', '2 * 3 * 4 and 2*3*4', '2 * 3 * 4 and 2*3*4'],
  ['no marks: names', 'my_long_name and __init__', 'my_long_name and <bold>init</>'],
  ['a mark without an end', 'a **b and `c', 'a **b and `c'],
  ['an escaped mark', '\\*not\\*', '*not*'],
  ['struck out', '~~old~~ new', '<strikethrough>old</> new'],
  ['a link', 'see [the page](https://x.example/a_b_c).', 'see <underline>the</> <underline>page</> <dim>(https://x.example/a_b_c)</>.'],
  ['a link that is its own text', '[http://x.y](http://x.y)', '<underline>http://x.y</>'],
  ['brackets that are no link', 'a [b] c', 'a [b] c'],
  ['headings', '# One\n## Two', '<bold,underline>One</>\n<bold>Two</>'],
  ['no heading', '#tag', '#tag'],
  ['bullets', '- a\n* b\n  + c', '• a\n• b\n  • c'],
  ['tasks', '- [ ] a\n- [x] b', '☐ a\n☑ b'],
  ['numbers', '1. a\n2) b\n10 c', '1. a\n2) b\n10 c'],
  ['a quote', '> a **b**', '<dim>│ </><dim>a</> <dim,bold>b</>'],
  ['a line', 'a\n\n---\nb', `a\n\n<dim>${'─'.repeat(40)}</>\nb`],
  [
    'a fence',
    '```js\nconst a = "*x*" // y\n```\nafter',
    '<dim>```js</>\n<magenta>const</> a = <green>"*x*"</> <dim>// y</>\n<dim>```</>\nafter',
  ],
  ['a fence in a list', '- a\n  ```sh\n  ls # all\n  ```', '• a\n<dim>  ```sh</>\nls <dim># all</>\n<dim>  ```</>\n'],
  ['a fence without an end', '```\n# no heading', '<dim>```</>\n# no heading\n'],
  ['a table', '| a | long |\n|---|:-:|\n| **1** | 2 |\nafter', 'a │ long\n──┼─────\n1 │ 2\nafter'],
  ['numbers at the right', '| a | long |\n|---|--:|\n| 1 | 22 |\nafter', 'a │ long\n──┼─────\n1 │   22\nafter'],
  ['what only begins as a table', '| a | b\nafter', '| a | b\nafter'],
]

for (const size of [1, 2, 3, 1024]) {
  test.each(CASES)(`in pieces of ${size}: %s`, (_, source, expected) => {
    expect(shown(source, { size })).toBe(expected)
  })
}

test('words are wrapped, and what hangs stays below its text', () => {
  expect(shown('- one two three four', { columns: 13 })).toBe('• one two\n  three four')
  expect(shown('12. one two three', { columns: 11 })).toBe('12. one\n    two\n    three')
  expect(shown('> one two three', { columns: 11 })).toBe('<dim>│ </><dim>one</> <dim>two</>\n<dim>│ </><dim>three</>')
})

test('nothing is wider than the terminal: long words, wide characters, lists that begin far to the right', () => {
  const text = `${'x'.repeat(50)} 日本語の文章はここで折り返されます。 👩‍👩‍👧‍👦 ok\n${' '.repeat(30)}- deep down\n| a | b |\n|--|--|\n| ${'long '.repeat(9)} | c |`
  for (const columns of [20, 30, 80]) {
    for (const line of shown(text, { columns }).split('\n')) expect(widthOf(line.trimEnd())).toBeLessThan(columns)
  }
})

test('without colours, only lines are broken', () => {
  expect(shown('# A **b**\n- c d e f g h', { columns: 9, plain: true })).toBe('# A\n**b**\n- c d e\nf g h')
})

test('a long line of code does not wait for its end', () => {
  const text = 'y'.repeat(5000)
  expect(shown(`\`\`\`\n${text}`, { columns: 10_000 }).replaceAll(/\s/g, '')).toContain(text)
})
