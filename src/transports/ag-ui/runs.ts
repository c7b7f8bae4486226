import type { Principal } from '../../core/ports/access.ts'
import type { Alias, Gateway, StoredResponse } from '../../core/ports/session.ts'
import type { Place, Store } from '../../core/ports/store.ts'
import { goesWith, storeKey } from '../../core/basics/store-key.ts'
import type { Json } from '../../protocol/json.ts'
import type { RunPlan } from './encoder.ts'
import type { WireMessage } from './schema.ts'

/** What is noted of a run with the response that it asks for: enough to tell it again. */
export type RunNote = Pick<RunPlan, 'threadId' | 'runId' | 'parentRunId' | 'duplex'> & {
  readonly legacy: boolean
  /** It brought only these messages, and was told what was said up to that response. */
  readonly joined?: { readonly from: string; readonly messages: readonly WireMessage[] }
}

/** A run, by the id that its client chose. */
export type RunRecord = RunNote &
  Pick<RunPlan, 'session' | 'response' | 'resumes'> & {
    readonly agent: string
    /** The session's newest event before it. */
    readonly after: number
  }

/** Of two with one id the newer is found. */
export class Runs {
  readonly #store: Store
  readonly #gateway: Gateway
  readonly #ttlMs: number

  constructor({ store, gateway }: { readonly store: Store; readonly gateway: Gateway }, ttlMs: number) {
    this.#store = store
    this.#gateway = gateway
    this.#ttlMs = ttlMs
  }

  /** A run that goes on with a response of another one has a record of its own. */
  async set(principal: Principal, record: RunRecord): Promise<void> {
    const index: Place[] = [[goesWith(principal.tenant, record.session), '']]
    await this.#store.set(keyOf(principal, record.runId), record as unknown as Json, { ttlMs: this.#ttlMs, index })
  }

  async find(principal: Principal, runId: string): Promise<RunRecord | undefined> {
    const [turn, stored] = await Promise.all([this.#gateway.response(nameOf(runId), principal), this.#store.get(keyOf(principal, runId))])
    const found = turn && recordOf(turn)
    const own = stored?.value as RunRecord | undefined
    // Ids of responses are in the order of time.
    return own && (!found || own.response >= found.response) ? own : found
  }
}

/** What the response of a run is called. */
export function nameOf(runId: string): Alias {
  return { protocol: 'ag-ui', id: runId }
}

function recordOf({ id, session, agent, after, note }: StoredResponse): RunRecord {
  return { ...(note as unknown as RunNote), session, response: id, agent, after }
}

/** A run as it is told, from what is stored of it. */
export function planOf(record: RunRecord, { config, given }: Pick<StoredResponse, 'config' | 'given'>): RunPlan {
  const tools = new Set(config.tools?.map((tool) => tool.function.name))
  return { ...record, tools, brought: new Set(given.flatMap((answer) => (answer.type === 'tool.result' ? [answer.call_id] : []))) }
}

function keyOf({ tenant, id }: Principal, runId: string): string {
  return storeKey(tenant, 'ag-ui-run', id, runId)
}
