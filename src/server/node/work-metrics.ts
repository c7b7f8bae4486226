import type { Registry } from 'prom-client'
import type { Metrics, WorkDone } from '../metrics.ts'

type Library = typeof import('prom-client')

/** The buckets that OpenTelemetry's GenAI conventions advise. */
const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864]

/** The kinds of tokens, and the attributes that count them. */
const KINDS = {
  input: 'gen_ai.usage.input_tokens',
  output: 'gen_ai.usage.output_tokens',
  cache_read: 'gen_ai.usage.cache_read.input_tokens',
  reasoning: 'gen_ai.usage.reasoning.output_tokens',
}

/** Labels and the attributes behind them. Prometheus takes no dots. */
const WHAT = {
  gen_ai_operation_name: 'gen_ai.operation.name',
  gen_ai_provider_name: 'gen_ai.provider.name',
  gen_ai_request_model: 'gen_ai.request.model',
  gen_ai_agent_name: 'gen_ai.agent.name',
}

/** What models, tools, agents and upstreams did, under the names of OpenTelemetry's GenAI conventions where these have one. */
export function workMetrics({ Counter, Histogram }: Library, metrics: Metrics, registry: Registry): (done: WorkDone) => void {
  const registers = [registry]
  const named = Object.keys(WHAT)
  const duration = new Histogram({
    name: 'gen_ai_client_operation_duration_seconds',
    help: 'Duration of calls to models and tools, and of agents at work',
    labelNames: [...named, 'gen_ai_tool_name', 'error_type'],
    buckets: SECONDS,
    registers,
  })
  const tokens = new Histogram({
    name: 'gen_ai_client_token_usage',
    help: 'Tokens of calls to models, and of agents at work',
    labelNames: [...named, 'gen_ai_token_type'],
    buckets: TOKENS,
    registers,
  })
  const cost = new Counter({ name: 'uamp_cost_total', help: 'What models cost', labelNames: [...named, 'currency'], registers })
  const calls = new Counter({
    name: 'uamp_upstream_requests_total',
    help: 'Calls to models and remote agents',
    labelNames: ['upstream', 'error_type'],
    registers,
  })
  const retries = new Counter({ name: 'uamp_upstream_retries_total', help: 'Calls sent again', labelNames: ['upstream'], registers })

  return ({ work, attributes, seconds, error }) => {
    const label = (name: string): string => metrics.label(name, attributes[name])
    const error_type = metrics.label('error.type', error)
    if (work === 'upstream') {
      const upstream = label('uamp.upstream')
      calls.inc({ upstream, error_type })
      retries.inc({ upstream }, Number(attributes['http.request.resend_count'] ?? 0))
      return
    }
    const what = Object.fromEntries(Object.entries(WHAT).map(([name, attribute]) => [name, label(attribute)]))
    duration.observe({ ...what, gen_ai_tool_name: label('gen_ai.tool.name'), error_type }, seconds)
    for (const [kind, attribute] of Object.entries(KINDS)) {
      const count = attributes[attribute]
      if (typeof count === 'number') tokens.observe({ ...what, gen_ai_token_type: kind }, count)
    }
    // An agent's cost is that of its models, which is counted already.
    const spent = work === 'chat' ? attributes['uamp.cost'] : undefined
    if (typeof spent === 'number' && spent > 0) cost.inc({ ...what, currency: label('uamp.currency') }, spent)
  }
}
