import type { Principal } from '../../core/ports/access.ts'
import type { Alias, Gateway, StoredResponse } from '../../core/ports/session.ts'
import type { Place, Store } from '../../core/ports/store.ts'
import { goesWith, storeKey } from '../../core/basics/store-key.ts'
import type { Json } from '../../protocol/json.ts'
import type { RunPlan } from './encoder.ts'
import { stateIn } from './state.ts'
import type { WireMessage } from './schema.ts'

/** The `note` that is stored with the response of a run: enough to replay the run. */
export type RunNote = Pick<RunPlan, 'threadId' | 'runId' | 'parentRunId' | 'duplex'> & {
  readonly legacy: boolean
  /** What the client sent, if it wants that back. */
  readonly input?: Readonly<Record<string, unknown>>
  /** The client brought only these messages, and was shown the conversation up to the response `from`. */
  readonly joined?: { readonly from: string; readonly messages: readonly WireMessage[] }
}

/** A run, stored under the id that its client chose. */
export type RunRecord = RunNote &
  Pick<RunPlan, 'session' | 'response' | 'resumes'> & {
    readonly agent: string
    /** The run's events follow this `seq` in the session's log. */
    readonly after: number
  }

/** Finds runs by their ids. If two have one id, the newer is found. */
export class Runs {
  readonly #store: Store
  readonly #gateway: Gateway
  readonly #ttlMs: number

  constructor({ store, gateway }: { readonly store: Store; readonly gateway: Gateway }, ttlMs: number) {
    this.#store = store
    this.#gateway = gateway
    this.#ttlMs = ttlMs
  }

  /** Stores a run that continues the response of another one, and so has no response of its own to be found by. */
  async set(principal: Principal, record: RunRecord): Promise<void> {
    const index: Place[] = [[goesWith(principal.tenant, record.session), '']]
    await this.#store.set(keyOf(principal, record.runId), record as unknown as Json, { ttlMs: this.#ttlMs, index })
  }

  async find(principal: Principal, runId: string): Promise<RunRecord | undefined> {
    const [turn, stored] = await Promise.all([this.#gateway.response(nameOf(runId), principal), this.#store.get(keyOf(principal, runId))])
    const found = turn && recordOf(turn)
    const own = stored?.value as RunRecord | undefined
    // Ids of responses sort by time.
    return own && (!found || own.response >= found.response) ? own : found
  }
}

/** The name under which the response of a run is stored. */
export function nameOf(runId: string): Alias {
  return { protocol: 'ag-ui', id: runId }
}

function recordOf({ id, session, agent, after, note }: StoredResponse): RunRecord {
  return { session, response: id, agent, after, ...(note as unknown as RunNote) }
}

/** The plan for replaying a stored run. */
export function planOf(record: RunRecord, { config, given }: Pick<StoredResponse, 'config' | 'given'>): RunPlan {
  const tools = new Set(config.tools?.map((tool) => tool.function.name))
  const state = record.joined ? stateIn(config) : undefined
  return { tools, state, brought: new Set(given.flatMap((answer) => (answer.type === 'tool.result' ? [answer.call_id] : []))), ...record }
}

function keyOf({ tenant, id }: Principal, runId: string): string {
  return storeKey(tenant, 'ag-ui-run', id, runId)
}
