import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { checkConfig } from '../../src/config/check.ts'
import { Problems } from '../../src/config/problems.ts'

const examples = ['docs/config.md', 'docs/connect.md'].flatMap((file) =>
  [...readFileSync(file, 'utf8').matchAll(/^```yaml\n([^]*?)\n```$/gm)].map(([, text = '']) => ({ file, text })),
)

test.each(examples)('an example in $file is a config: %#', ({ file, text }) => {
  const source = { file, value: parse(text) as unknown, lineOf: () => undefined }
  const problems = new Problems(source)
  expect(checkConfig(source, problems).entries.length).toBeGreaterThan(0)
  problems.throwIfAny()
})

test('both pages have examples', () => {
  expect(new Set(examples.map(({ file }) => file)).size).toBe(2)
})
