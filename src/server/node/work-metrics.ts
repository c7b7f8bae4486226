import type { Metric, MetricObjectWithValues, MetricValueWithName, Registry } from 'prom-client'
import type { Labelled, Sizes, Sum } from '../labelled.ts'
import type { WorkCounts } from '../work-counts.ts'

interface Shown {
  readonly name: string
  readonly help: string
}

/** Shows counts that are kept elsewhere. The library would take several microseconds to count each request itself. */
export function shownSizes(registry: Registry, { name, help }: Shown, sizes: Labelled<Sizes>): void {
  show(registry, { name, help, type: 'histogram' }, () =>
    [...sizes].flatMap(({ labels, counted }) => {
      let count = 0
      const values = counted.bounds.map((le, place) => {
        count += counted.counts[place] ?? 0
        return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count }
      })
      count += counted.counts.at(-1) ?? 0
      return [
        ...values,
        { metricName: `${name}_bucket`, labels: { le: '+Inf', ...labels }, value: count },
        { metricName: `${name}_sum`, labels, value: counted.sum },
        { metricName: `${name}_count`, labels, value: count },
      ]
    }),
  )
}

function shownSums(registry: Registry, { name, help }: Shown, sums: Labelled<Sum>): void {
  show(registry, { name, help, type: 'counter' }, () =>
    [...sums].map(({ labels, counted }) => ({ metricName: name, labels, value: counted.value })),
  )
}

/** The library asks a metric for its values when somebody asks for the page. */
function show(registry: Registry, shown: Shown & { readonly type: string }, values: () => MetricValueWithName<string>[]): void {
  const get = () => Promise.resolve({ ...shown, aggregator: 'sum', values: values() } as object)
  registry.registerMetric({ ...shown, get } as { get(): Promise<object> } as Metric & {
    get(): Promise<MetricObjectWithValues<MetricValueWithName<string>>>
  })
}

/** What models, tools, agents and upstreams did, under the names of OpenTelemetry's GenAI conventions where these have one. */
export function workMetrics(registry: Registry, work: WorkCounts): void {
  const duration = 'gen_ai_client_operation_duration_seconds'
  shownSizes(registry, { name: duration, help: 'Duration of calls to models and tools, and of agents at work' }, work.durations)
  shownSizes(registry, { name: 'gen_ai_client_token_usage', help: 'Tokens of calls to models, and of agents at work' }, work.tokens)
  shownSums(registry, { name: 'uamp_cost_total', help: 'What models cost' }, work.costs)
  shownSums(registry, { name: 'uamp_upstream_requests_total', help: 'Calls to models and remote agents' }, work.calls)
  shownSums(registry, { name: 'uamp_upstream_retries_total', help: 'Calls sent again' }, work.retries)
}
