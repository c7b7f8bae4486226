import { test } from 'vitest'
import { requirements, type RequirementId } from '../../spec/requirements.ts'

type Ids = RequirementId | readonly RequirementId[]
type Run = () => void | Promise<void>

/**
 * A test that shows a requirement to be met. Ids are written as literals, in the call or as `verifies: 'id'` in a row of a
 * table, as test/requirements.test.ts finds them in the source.
 */
export function verifies(ids: Ids, name: string, run: Run): void {
  test(title(ids, name), run)
}

/** A test of what is not built yet. It passes while it fails, so that the day it is built does not go unnoticed. */
export function expectedFailure(ids: Ids, name: string, run: Run): void {
  test.fails(title(ids, name), run)
}

function title(ids: Ids, name: string): string {
  const cited = typeof ids === 'string' ? [ids] : ids
  for (const id of cited) if (!requirements.has(id)) throw new Error(`spec/requirements.ts has no ${id}`)
  return cited.length === 0 ? name : `${name} [${cited.join(', ')}]`
}
