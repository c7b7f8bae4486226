import type { Registry } from 'prom-client'
import type { Metrics } from '../metrics.ts'
import { paymentMetrics } from './payment-metrics.ts'
import { shownSizes, workMetrics } from './work-metrics.ts'

/** Answers `/metrics`. The first call loads the library. */
export function prometheus(metrics: Metrics): () => Promise<Response> {
  let loaded: Promise<Registry> | undefined
  return async () => {
    const registry = await (loaded ??= register(metrics))
    return new Response(await registry.metrics(), { headers: { 'content-type': registry.contentType } })
  }
}

async function register(metrics: Metrics): Promise<Registry> {
  const { Counter, Gauge, Registry, collectDefaultMetrics } = (await import('prom-client')).default
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
  const help = 'Time from response.create to the first delta'
  shownSizes(registry, { name: 'uamp_first_delta_seconds', help }, metrics.firstDeltas)
  workMetrics(registry, metrics.work)
  if (metrics.payments) await paymentMetrics(registry, metrics.payments)
  return registry
}
