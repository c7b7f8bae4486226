import type { Turn } from '../core/ports/agent.ts'
import { UampError } from '../protocol/errors.ts'
import { fieldsOf, recordsIn } from '../protocol/json.ts'
import { UAMP_VERSION } from '../protocol/version.ts'
import { callUpstream, shortBounds } from '../upstream/upstream.ts'
import { originOf } from '../upstream/remote-url.ts'
import { readJson } from '../wire/upstream.ts'
import { readCard, cardUrls } from './a2a/card.ts'
import { stamp } from './events/request.ts'

/** A protocol that the other side speaks, and where. The best one comes first in `discover`. */
export type Spoken =
  | { readonly protocol: 'events' | 'a2a' | 'ag-ui'; readonly url: string }
  | { readonly protocol: 'completions'; readonly url: string; readonly model: string }

export interface DiscoverOptions {
  /** The name of the agent here, for errors. */
  readonly name: string
  readonly url: string
  /** Its name there. */
  readonly agent?: string | undefined
  readonly model?: string | undefined
  readonly headers: Readonly<Record<string, string>>
}

type Calling = Pick<Turn, 'http' | 'signal'>

const ANSWER_BYTES = 1024 * 1024
const LOOK_MS = 5_000
/** What a server says of a path where it has nothing. */
const NOTHING: ReadonlySet<unknown> = new Set([400, 404, 405, 406, 410, 415, 501])

/**
 * Finds the best protocol that the server at a URL speaks: UAMP events, A2A, AG-UI, Chat Completions, in this order. The operator
 * named the URL; what the server names itself must be on the same host.
 */
export async function discover(options: DiscoverOptions, by: Calling): Promise<Spoken> {
  const base = options.url.replace(/[?#].*$/, '').replace(/\/+$/, '')
  const { agent } = options
  const bases = agent === undefined ? [base] : [`${base}/agents/${encodeURIComponent(agent)}`, base]
  const look = new Look(options, by)
  for (const each of bases) {
    const found = (await look.events(each)) ?? (await look.a2a(each)) ?? (await look.agUi(each)) ?? (await look.completions(each))
    if (found) return found
  }
  throw look.nothing()
}

/** One search, and what was refused on the way. */
class Look {
  readonly #options: DiscoverOptions
  readonly #by: Calling
  #isRefused = false
  /** Protocols that are there, and why they cannot be used. */
  readonly #unusable: string[] = []

  constructor(options: DiscoverOptions, by: Calling) {
    this.#options = options
    this.#by = by
  }

  /** UAMP events §9. The capabilities are those of an agent that may not be offered through events, so it is asked something. */
  async events(base: string): Promise<Spoken | undefined> {
    const { modalities, supports_streaming: streams } = fieldsOf(await this.#json(`${base}/capabilities`))
    if (!Array.isArray(modalities) || typeof streams !== 'boolean') return undefined
    const ping = JSON.stringify({ ...stamp('ping'), uamp_version: UAMP_VERSION })
    const answer = await this.#ask({ url: `${base}/events`, method: 'POST', body: ping })
    return answer === 'nothing' ? undefined : { protocol: 'events', url: base }
  }

  async a2a(base: string): Promise<Spoken | undefined> {
    for (const url of cardUrls(base)) {
      const value = await this.#json(url)
      if (value === undefined) continue
      try {
        const { interfaces } = readCard(value, { name: `"${this.#options.name}"`, from: url })
        if (interfaces.some((one) => originOf(one.url) === originOf(base))) return { protocol: 'a2a', url: base }
        this.#unusable.push('its card names addresses on other hosts only')
      } catch (thrown) {
        this.#unusable.push(UampError.from(thrown).message)
      }
    }
    return undefined
  }

  async agUi(base: string): Promise<Spoken | undefined> {
    for (const url of [`${base}/ag-ui`, base]) {
      const { identity, transport } = fieldsOf(await this.#json(`${url}/capabilities`))
      if (identity !== undefined && transport !== undefined) return { protocol: 'ag-ui', url }
    }
    return undefined
  }

  async completions(base: string): Promise<Spoken | undefined> {
    for (const url of [`${base}/v1`, base]) {
      const { data } = fieldsOf(await this.#json(`${url}/models`))
      const models = recordsIn(data).flatMap(({ id }) => (typeof id === 'string' ? [id] : []))
      if (models.length === 0) continue
      const { model, agent } = this.#options
      const chosen = model ?? (agent !== undefined && models.includes(agent) ? agent : models.length === 1 ? models[0] : undefined)
      if (chosen !== undefined) return { protocol: 'completions', url, model: chosen }
      this.#unusable.push(`it has ${models.length} models: name one as \`model\``)
    }
    return undefined
  }

  nothing(): UampError {
    const { name, url } = this.#options
    const tried = 'UAMP events, A2A, AG-UI, Chat Completions'
    const why = this.#isRefused ? 'it refused the credentials' : [...new Set(this.#unusable)].join('; ')
    const advice = this.#isRefused ? 'Give it a `token`, or one that is valid there' : 'Name it as `protocol`'
    const message = `No protocol was found for "${name}" at ${shown(url)} (${tried})${why === '' ? '' : `: ${why}`}. ${advice}`
    return new UampError('not_supported', message)
  }

  /** Undefined: there is no JSON at this address. */
  async #json(url: string): Promise<unknown> {
    const answer = await this.#ask({ url, method: 'GET' })
    return typeof answer === 'string' ? undefined : answer.value
  }

  /** Throws if the server cannot be reached, or is not well: then nothing is known of it. */
  async #ask(request: { url: string; method: 'GET' | 'POST'; body?: string }): Promise<{ value: unknown } | 'nothing' | 'refused'> {
    const { name, headers: given } = this.#options
    const headers = { accept: 'application/json', ...(request.body !== undefined && { 'content-type': 'application/json' }), ...given }
    const server = `The server of "${name}"`
    const bounds = { ...shortBounds(ANSWER_BYTES, LOOK_MS), retries: 0 }
    let status: unknown
    try {
      const { body } = await callUpstream({
        name: server,
        request: { ...request, headers },
        explain: () => undefined,
        ...bounds,
        ...this.#by,
      })
      return { value: await readJson(server, body, ANSWER_BYTES).catch(() => undefined) }
    } catch (thrown) {
      this.#by.signal.throwIfAborted()
      status = UampError.from(thrown).details?.['status']
      // A redirect is not followed: it may lead to another host.
      const isMoved = typeof status === 'number' && status >= 300 && status < 400
      if (isMoved) this.#unusable.push('it redirects, and only the address that it redirects to can be used')
      if (isMoved || NOTHING.has(status)) return 'nothing'
      if (status !== 401 && status !== 403) throw thrown
      this.#isRefused = true
      return 'refused'
    }
  }
}

/** Without a query and credentials, which may be secret. */
function shown(url: string): string {
  const { origin, pathname } = new URL(url)
  return origin + pathname
}
