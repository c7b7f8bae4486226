import type { Principal } from '../../core/ports/access.ts'
import type { StoredTurn } from '../../core/ports/session.ts'
import type { Store } from '../../core/ports/store.ts'
import { goesWith, storeKey } from '../../core/store-key.ts'
import type { Json } from '../../protocol/json.ts'
import type { RunPlan } from './encoder.ts'
import type { WireMessage } from './schema.ts'

/** A run, by the id that its client chose: enough to tell it again. */
export type RunRecord = Omit<RunPlan, 'tools' | 'brought'> & {
  readonly agent: string
  /** The session's newest event before it. */
  readonly after: number
  readonly legacy: boolean
  /** It brought only these messages, and was told what was said up to that response. */
  readonly joined?: { readonly from: string; readonly messages: readonly WireMessage[] }
}

/** Of two with one id the newer is found. */
export class Runs {
  readonly #store: Store
  readonly #ttlMs: number

  constructor(store: Store, ttlMs: number) {
    this.#store = store
    this.#ttlMs = ttlMs
  }

  async set(principal: Principal, record: RunRecord): Promise<void> {
    const index = { [goesWith(principal.tenant, record.session)]: '' }
    await this.#store.set(keyOf(principal, record.runId), record as unknown as Json, { ttlMs: this.#ttlMs, index })
  }

  async find(principal: Principal, runId: string): Promise<RunRecord | undefined> {
    return (await this.#store.get(keyOf(principal, runId)))?.value as RunRecord | undefined
  }
}

/** A run as it is told, from what is stored of it. */
export function planOf(record: RunRecord, { config, given }: Pick<StoredTurn, 'config' | 'given'>): RunPlan {
  const tools = new Set(config.tools?.map((tool) => tool.function.name))
  return { ...record, tools, brought: new Set(given.flatMap((answer) => (answer.type === 'tool.result' ? [answer.call_id] : []))) }
}

function keyOf({ tenant, id }: Principal, runId: string): string {
  return storeKey(tenant, 'ag-ui-run', id, runId)
}
