import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface Citations {
  readonly verified: ReadonlySet<string>
  readonly expectedFailures: ReadonlySet<string>
}

/** `verifies('id', …)`, `verifies(['id', 'id'], …)`, `verifies: 'id'`; and the same for `expectedFailure`. */
const CITATION = /\b(verifies|expectedFailure)(?:\(|:)\s*(\[[^\]]*\]|'[^']*')/g
const COMMENT_LINE = /^\s*(\/\/|\*|\/\*).*$/gm

/** The requirement ids that a test's source cites. Commented lines do not count. */
export function citationsIn(source: string): Citations {
  const verified = new Set<string>()
  const expectedFailures = new Set<string>()
  for (const [, how, cited = ''] of source.replace(COMMENT_LINE, '').matchAll(CITATION)) {
    for (const [, id = ''] of cited.matchAll(/'([^']*)'/g)) (how === 'verifies' ? verified : expectedFailures).add(id)
  }
  return { verified, expectedFailures }
}

/** The sources of all tests: those beside their file in src, and everything in test. */
export function testSources(): string[] {
  return [...files('src', '.test.ts'), ...files('test', '.ts')].map((path) => readFileSync(path, 'utf8'))
}

function files(folder: string, ending: string): string[] {
  const root = fileURLToPath(new URL(`../../${folder}/`, import.meta.url))
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith(ending) && !/(^|[\\/])(node_modules|fixtures)[\\/]/.test(path))
    .map((path) => root + path)
}
