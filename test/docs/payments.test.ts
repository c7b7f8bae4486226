import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const docs = fileURLToPath(new URL('../../docs/', import.meta.url))
/** The page itself, a generated one, and one about what is kept out of logs and files. */
const ELSEWHERE = ['payments.md', 'mapping.md', 'server.md']
const TELLS_HOW_TO_PAY = /X-PAYMENT|payment_token|`payment\.submit`/

test('every page that says how to pay leads to the page about payments', () => {
  const pages = readdirSync(docs).filter((name) => name.endsWith('.md') && !ELSEWHERE.includes(name))
  const about = pages.filter((name) => TELLS_HOW_TO_PAY.test(readFileSync(docs + name, 'utf8')))
  expect(about.length).toBeGreaterThan(5)
  expect(about.filter((name) => !readFileSync(docs + name, 'utf8').includes('payments.md'))).toEqual([])
})
