import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { COMPOSES, MAY_IMPORT } from '../../.dependency-cruiser.mjs'
import { cruise } from '../../scripts/import-rules.js'

test('every folder of src is under a rule, so that a new one is not free by accident', () => {
  const folders = readdirSync('src', { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))
  expect(folders.filter((folder) => !(folder in MAY_IMPORT) && !COMPOSES.includes(folder))).toEqual([])
})

test('each rule finds the violation planted for it, and nothing else is an error', () => {
  const { violations } = cruise('test/tooling/fixtures/broken-rules')
  expect(violations.map(({ rule, from }) => `${rule.name}: ${from.replace('src/', '')}`).toSorted()).toEqual([
    'declared: core/uses-dev.ts',
    'drivers-are-strangers: stores/sqlite.ts',
    'layer-client: client/index.ts',
    'layer-providers: providers/echo/index.ts',
    'layer-server: server/app.ts',
    'no-cycles: core/a.ts',
    'protocol-imports-zod-mini: protocol/uses-zod.ts',
    'runtime-neutral-packages: server/app.ts',
    'runtime-neutral: core/session.ts',
    'siblings-are-strangers: transports/one/index.ts',
    'source-knows-no-tests: agents/demo/index.ts',
  ])
})
