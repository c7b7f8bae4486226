import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { checkConfig } from '../../src/config/check.ts'

const guide = readFileSync('docs/config.md', 'utf8')
const examples = [...guide.matchAll(/^```yaml\n([^]*?)\n```$/gm)].map(([, text = '']) => text)

test.each(examples)('an example in docs/config.md is a config: %#', (text) => {
  expect(checkConfig({ file: 'docs/config.md', value: parse(text), lineOf: () => undefined }).entries.length).toBeGreaterThan(0)
})

test('docs/config.md has examples', () => {
  expect(examples.length).toBeGreaterThan(1)
})
