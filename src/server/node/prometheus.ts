import type { Registry } from 'prom-client'
import type { Metrics } from '../metrics.ts'
import { workMetrics } from './work-metrics.ts'

const FIRST_DELTA_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** Shows the metrics in Prometheus' format. Loads prom-client with the first request, because it takes a tenth of the start-up time. */
export function prometheus(metrics: Metrics): () => Promise<Response> {
  let loaded: ReturnType<typeof register> | undefined
  const load = async (): Promise<Registry> => {
    const { registry, firstDelta, observe } = await (loaded ??= register(metrics))
    for (const work of metrics.takeWork()) observe(work)
    for (const { transport, seconds } of metrics.takeFirstDeltas()) firstDelta.observe({ transport }, seconds)
    return registry
  }
  metrics.onPending = () =>
    void load().catch(() => {
      metrics.takeFirstDeltas()
      metrics.takeWork()
    })
  return async () => {
    const registry = await load()
    return new Response(await registry.metrics(), { headers: { 'content-type': registry.contentType } })
  }
}

async function register(metrics: Metrics) {
  const library = (await import('prom-client')).default
  const { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } = library
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  new Counter({
    name: 'uamp_http_requests_total',
    help: 'HTTP requests answered',
    labelNames: ['transport', 'route', 'method', 'status'],
    registers,
    collect() {
      this.reset()
      for (const [mounted, counts] of metrics.requests) {
        const where = mounted === 'unmatched' ? { transport: '', route: '' } : { transport: mounted.transport, route: mounted.route.path }
        for (const [key, count] of counts) {
          const [method = '', status = ''] = key.split(' ')
          this.inc({ ...where, method, status }, count)
        }
      }
    },
  })
  new Counter({
    name: 'uamp_events_total',
    help: 'Events sent to clients',
    labelNames: ['transport'],
    registers,
    collect() {
      this.reset()
      for (const [transport, count] of metrics.events) this.inc({ transport }, count)
    },
  })
  new Counter({
    name: 'uamp_errors_total',
    help: 'Errors of routes and sockets',
    labelNames: ['transport', 'code'],
    registers,
    collect() {
      this.reset()
      for (const [transport, counts] of metrics.errors) for (const [code, count] of counts) this.inc({ transport, code }, count)
    },
  })
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read())
      },
    })
  gauge('uamp_open_sockets', 'Open WebSockets', () => metrics.openSockets)
  gauge('uamp_open_sessions', 'Open sessions', () => metrics.gauges.openSessions)
  gauge('uamp_open_responses', 'Running responses', () => metrics.gauges.openResponses)
  gauge('uamp_held_bytes', 'Bytes that sessions hold in memory, of heldBytes', () => metrics.gauges.heldBytes)
  const firstDelta = new Histogram({
    name: 'uamp_first_delta_seconds',
    help: 'Time from response.create to the first delta',
    labelNames: ['transport'] as const,
    buckets: FIRST_DELTA_SECONDS,
    registers,
  })
  return { registry, firstDelta, observe: workMetrics(library, metrics, registry) }
}
