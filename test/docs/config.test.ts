import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { checkConfig } from '../../src/config/check.ts'
import { Problems } from '../../src/config/problems.ts'

const GUIDES = ['docs/config.md', 'docs/prices.md', 'docs/identity.md', 'docs/connect.md']
const examples = GUIDES.flatMap((guide) =>
  [...readFileSync(guide, 'utf8').matchAll(/^```yaml\n([^]*?)\n```$/gm)].map(([, text = '']) => ({ guide, text })),
)

test.each(examples)('an example in $guide is a config: %#', ({ guide, text }) => {
  const source = { file: guide, value: parse(text) as unknown, lineOf: () => undefined }
  const problems = new Problems(source)
  expect(checkConfig(source, problems).entries.length).toBeGreaterThan(0)
  problems.throwIfAny()
})

test.each(GUIDES)('%s has examples', (name) => {
  expect(examples.filter(({ guide }) => guide === name).length).toBeGreaterThan(0)
})
