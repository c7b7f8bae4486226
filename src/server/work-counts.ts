import type { Attributes, Work } from '../core/ports/trace.ts'
import { Labelled, Sizes, type Sum } from './labelled.ts'
import type { WorkDone, WorkMeter } from './trace.ts'

/** The buckets that OpenTelemetry's GenAI conventions advise. */
const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864]

/** The kinds of tokens, and the attributes that count them. */
const KINDS = [
  ['input', 'gen_ai.usage.input_tokens'],
  ['output', 'gen_ai.usage.output_tokens'],
  ['cache_read', 'gen_ai.usage.cache_read.input_tokens'],
  ['reasoning', 'gen_ai.usage.reasoning.output_tokens'],
] as const

/** The most models, tools, agents or upstreams that are counted by name, and the most characters of a name. */
const MOST_LABELS = 64
const LABEL_LENGTH = 100

/** Labels of all that agents and models do. Prometheus takes no dots. */
const WHAT = ['gen_ai_operation_name', 'gen_ai_provider_name', 'gen_ai_request_model', 'gen_ai_agent_name']

/** The attributes that are labels. */
const LABELS = ['gen_ai.provider.name', 'gen_ai.request.model', 'gen_ai.agent.name', 'gen_ai.tool.name'] as const

/** Where one kind of work is counted. */
interface Series {
  readonly attributes: Attributes
  readonly error: string | undefined
  /** The first labels of all its counts. */
  readonly what: string
  readonly durations: Sizes
  /** In the order of `KINDS`. */
  readonly tokens: Sizes[]
}

const sum = (): Sum => ({ value: 0 })

/** What models, tools, agents and upstreams did. */
export class WorkCounts implements WorkMeter {
  readonly durations = new Labelled([...WHAT, 'gen_ai_tool_name', 'error_type'], () => new Sizes(SECONDS))
  readonly tokens = new Labelled([...WHAT, 'gen_ai_token_type'], () => new Sizes(TOKENS))
  readonly costs = new Labelled([...WHAT, 'currency'], sum)
  readonly calls = new Labelled(['upstream', 'error_type'], sum)
  readonly retries = new Labelled(['upstream'], sum)
  readonly #labels = new Map<string, Set<string>>()
  /** The last of each kind of work. Most requests are for the same agent and model, and need no new key. */
  readonly #last = new Map<Work, Series>()

  observeWork({ work, attributes, added = attributes, ms, error }: WorkDone): void {
    if (work === 'upstream') {
      const upstream = this.label('uamp.upstream', attributes['uamp.upstream'])
      this.calls.at(`${upstream}\0${this.label('error.type', error)}`).value++
      this.retries.at(upstream).value += Number(added['http.request.resend_count'] ?? 0)
      return
    }
    const series = this.#series(work, attributes, error)
    series.durations.observe(ms / 1000)
    for (const [place, [kind, attribute]] of KINDS.entries()) {
      const count = added[attribute]
      if (typeof count === 'number') (series.tokens[place] ??= this.tokens.at(`${series.what}\0${kind}`)).observe(count)
    }
    // An agent's cost is that of its models, which is counted already.
    const spent = work === 'chat' ? added['uamp.cost'] : undefined
    if (typeof spent !== 'number' || spent <= 0) return
    this.costs.at(`${series.what}\0${this.label('uamp.currency', added['uamp.currency'])}`).value += spent
  }

  #series(work: Work, attributes: Attributes, error: string | undefined): Series {
    const last = this.#last.get(work)
    if (last && last.error === error && LABELS.every((name) => last.attributes[name] === attributes[name])) return last
    const [provider, model, agent, tool] = LABELS.map((name) => this.label(name, attributes[name]))
    const what = `${work}\0${provider}\0${model}\0${agent}`
    const durations = this.durations.at(`${what}\0${tool}\0${this.label('error.type', error)}`)
    const series = { attributes, error, what, durations, tokens: [] }
    this.#last.set(work, series)
    return series
  }

  /** A label of what others have named, of which there may be too many. */
  label(name: string, value: string | number | undefined): string {
    if (value === undefined) return ''
    let values = this.#labels.get(name)
    if (!values) this.#labels.set(name, (values = new Set()))
    if (values.has(value as string)) return value as string
    const text = String(value).slice(0, LABEL_LENGTH).replaceAll('\0', '')
    if (values.has(text)) return text
    if (values.size >= MOST_LABELS) return 'other'
    values.add(text)
    return text
  }
}
