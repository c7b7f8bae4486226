import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { mistakesIn, type JsonSchema } from '../../src/core/tools/json-schema.ts'

interface Group {
  readonly description: string
  readonly schema: JsonSchema | boolean
  readonly tests: readonly { readonly description: string; readonly data: unknown; readonly valid: boolean }[]
}

/** The required tests of draft 2020-12, from https://github.com/json-schema-org/JSON-Schema-Test-Suite (see LICENSE). */
const FOLDER = new URL('draft2020-12/', import.meta.url)

const files = readdirSync(FOLDER).map((name): [string, readonly Group[]] => [
  name.replace('.json', ''),
  JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8')) as readonly Group[],
])

/** Keywords that are refused, because they need other documents, or depend on the path by which a schema was reached. */
const REFUSED = /^The schema uses "(\$ref|\$dynamicRef|\$id|\$schema)" in a way that is not supported$/
/** Only these files may have schemas that are refused, and no more of them than now. */
const MAY_REFUSE: Readonly<Record<string, number>> = {
  anchor: 4,
  defs: 1,
  dynamicRef: 21,
  ref: 16,
  refRemote: 15,
  unevaluatedItems: 1,
  unevaluatedProperties: 1,
  vocabulary: 2,
}

describe.each(files)('JSON Schema 2020-12, %s', (file, groups) => {
  const refused = new Set<string>()

  test.each(groups.map((group): [string, Group] => [group.description, group]))('%s', (name, { schema, tests }) => {
    for (const { description, data, valid } of tests) {
      const found = isValid(schema, data)
      if (typeof found === 'string') refused.add(name)
      else expect([description, found]).toEqual([description, valid])
    }
  })

  test('no more schemas are refused than before', () => {
    expect(refused.size).toBe(MAY_REFUSE[file] ?? 0)
  })
})

/** The message, if the schema is refused. */
function isValid(schema: JsonSchema | boolean, data: unknown): boolean | string {
  try {
    return mistakesIn(schema, data, { patterns: true }).length === 0
  } catch (thrown) {
    const { message } = thrown as Error
    expect(message).toMatch(REFUSED)
    return message
  }
}
