import type { ModelTable } from '../../core/ports/models.ts'
import { readTable, tableFile } from './table.ts'

/** The table that `uamp models update` wrote, for agents that are served here. One that cannot be used is told, and left out. */
export async function servedModels(env: NodeJS.ProcessEnv, tell: (problem: string) => void): Promise<ModelTable | undefined> {
  try {
    const stored = readTable(tableFile(env))
    if (!stored) return undefined
    // A later version of this package brings newer prices.
    const { TABLE_DATE } = await import('../../agents/llm/price-table.ts')
    return stored.date < TABLE_DATE ? undefined : stored.models
  } catch (thrown) {
    tell((thrown as Error).message)
    return undefined
  }
}
