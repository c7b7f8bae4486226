import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { checkConfig } from '../../src/config/check.ts'
import { Problems } from '../../src/config/problems.ts'

const guide = readFileSync('docs/config.md', 'utf8')
const examples = [...guide.matchAll(/^```yaml\n([^]*?)\n```$/gm)].map(([, text = '']) => text)

test.each(examples)('an example in docs/config.md is a config: %#', (text) => {
  const source = { file: 'docs/config.md', value: parse(text) as unknown, lineOf: () => undefined }
  const problems = new Problems(source)
  expect(checkConfig(source, problems).entries.length).toBeGreaterThan(0)
  problems.throwIfAny()
})

test('docs/config.md has examples', () => {
  expect(examples.length).toBeGreaterThan(1)
})
