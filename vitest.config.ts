import { relative } from 'node:path'
import { env } from 'node:process'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { LEFT_OUT, longOnly } from './scripts/left-out.js'

/** These look at the whole process, at its memory, its listeners or its clock, and have one to themselves. `LEFT_OUT` has them too. */
const ALONE = [
  'test/{kept-bytes,listeners,month,unread,clock-steps}.test.ts',
  'test/sizes/*.test.ts',
  'test/docs/snippets.test.ts',
  'src/core/engine/signing.test.ts',
]

/** The longest, from the longest on: begun first, they leave no worker waiting at the end. */
const LONGEST = [
  'test/docs/snippets.test.ts',
  'test/fuzz/fuzz.test.ts',
  'test/sizes/large.test.ts',
  'test/envelope/second-implementation.test.ts',
  'test/money/money.test.ts',
  'test/chaos/chaos.test.ts',
  'test/month.test.ts',
  'test/fresh/fresh.test.ts',
  'test/cli/tarball.test.ts',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId, project }: TestSpecification): number => {
      const found = LONGEST.indexOf(relative(project.config.root, moduleId).replaceAll('\\', '/'))
      if (found >= 0) return found
      // A worker is kept for the next file only if that one, too, does not ask for one of its own.
      return LONGEST.length + (project.config.isolate ? 0 : 1)
    }
    return (await super.sort(files)).toSorted((one, other) => place(one) - place(other))
  }
}

/** `fast`: what `npm test -- --fast` runs; `rest`: all others. */
const part = env['UAMP_PART']
const leftOut = Object.values(LEFT_OUT).flat()
const notNow = part === 'fast' ? leftOut : part === 'rest' ? Object.values(longOnly(env)).flat() : []
const exclude = ['**/node_modules/**', 'test/tooling/fixtures/**', ...notNow]

/** `test/cli/**` with the ending of tests. */
function testsIn(pattern: string): string {
  return pattern.endsWith('**') ? `${pattern}/*.test.ts` : pattern
}

const common = {
  pool: 'forks',
  retry: 0,
  testTimeout: 30_000,
  hookTimeout: 30_000,
  // One second by default, which a busy machine takes for a webhook.
  expect: { poll: { timeout: 10_000 } },
  // More than the two cores of CI: many files wait for other processes most of their time.
  maxWorkers: 4,
} as const

export default defineConfig({
  test: {
    ...common,
    // Here and not in what the projects share: once is enough.
    globalSetup: 'test/support/fresh-place.ts',
    sequence: { sequencer: LongestFirst },
    projects: [
      { test: { ...common, name: 'alone', include: ALONE, exclude } },
      // No module has state, so that a worker may load them once for all its files.
      {
        test: {
          ...common,
          name: 'shared',
          include: part === 'rest' ? leftOut.map(testsIn) : ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: [...exclude, ...ALONE],
          isolate: false,
        },
      },
    ],
  },
})
