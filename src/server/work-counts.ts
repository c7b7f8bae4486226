import type { Attributes } from '../core/ports/trace.ts'
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

const sum = (): Sum => ({ value: 0 })

/** What models, tools, agents and upstreams did. */
export class WorkCounts implements WorkMeter {
  readonly durations = new Labelled([...WHAT, 'gen_ai_tool_name', 'error_type'], () => new Sizes(SECONDS))
  readonly tokens = new Labelled([...WHAT, 'gen_ai_token_type'], () => new Sizes(TOKENS))
  readonly costs = new Labelled([...WHAT, 'currency'], sum)
  readonly calls = new Labelled(['upstream', 'error_type'], sum)
  readonly retries = new Labelled(['upstream'], sum)
  readonly #labels = new Map<string, Set<string>>()

  observeWork({ work, attributes, ms, error }: WorkDone): void {
    const failure = this.label('error.type', error)
    if (work === 'upstream') {
      const upstream = this.#labelIn(attributes, 'uamp.upstream')
      this.calls.at(`${upstream}\0${failure}`).value++
      this.retries.at(upstream).value += Number(attributes['http.request.resend_count'] ?? 0)
      return
    }
    const provider = this.#labelIn(attributes, 'gen_ai.provider.name')
    const model = this.#labelIn(attributes, 'gen_ai.request.model')
    const agent = this.#labelIn(attributes, 'gen_ai.agent.name')
    const tool = this.#labelIn(attributes, 'gen_ai.tool.name')
    const what = `${work}\0${provider}\0${model}\0${agent}`
    this.durations.at(`${what}\0${tool}\0${failure}`).observe(ms / 1000)
    for (const [kind, attribute] of KINDS) {
      const count = attributes[attribute]
      if (typeof count === 'number') this.tokens.at(`${what}\0${kind}`).observe(count)
    }
    // An agent's cost is that of its models, which is counted already.
    const spent = work === 'chat' ? attributes['uamp.cost'] : undefined
    if (typeof spent === 'number' && spent > 0) this.costs.at(`${what}\0${this.#labelIn(attributes, 'uamp.currency')}`).value += spent
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

  #labelIn(attributes: Attributes, name: string): string {
    return this.label(name, attributes[name])
  }
}
