import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const docs = fileURLToPath(new URL('../../docs/', import.meta.url))

test.each(['events', 'openai', 'a2a', 'acp', 'ag-ui', 'omnia'])('the page of %s says what is public, limited and different', (name) => {
  const [, section] = readFileSync(`${docs}${name}.md`, 'utf8').split('\n## Public, limited, different\n')
  expect(section).toMatch(/public|Without a token/)
  expect(section).toMatch(/Limits|limits/)
  expect(section?.match(/^\| .* \|$/gm)?.length).toBeGreaterThan(4)
})
