import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Attributes } from '../../core/ports/trace.ts'
import type { RecordedSpan, Recorder, RecordOptions } from '../trace.ts'

/** Users install the package themselves, with an SDK that exports what it is given. */
const PACKAGE = '@opentelemetry/api'

/** The part of `@opentelemetry/api` that is used. */
interface Api {
  readonly ROOT_CONTEXT: Context
  readonly SpanKind: Readonly<Record<'SERVER' | 'CLIENT' | 'INTERNAL', number>>
  readonly SpanStatusCode: { readonly ERROR: number }
  readonly ProxyTracerProvider: new () => { getDelegate(): object }
  readonly trace: {
    getTracerProvider(): { getDelegate?(): object }
    getTracer(name: string): { startSpan(name: string, options: object, context: Context): ApiSpan }
    setSpan(context: Context, span: ApiSpan): Context
  }
  readonly context: { with<T>(context: Context, code: () => T): T }
  readonly propagation: {
    extract(context: Context, carrier: object): Context
    inject(context: Context, carrier: object): void
  }
}

type Context = object

interface ApiSpan {
  spanContext(): { readonly traceId: string }
  isRecording(): boolean
  setAttributes(attributes: object): void
  setStatus(status: object): void
  end(): void
}

/** OpenTelemetry, if it is installed. It records only if the program has registered an SDK. */
export function openTelemetry(): Recorder | undefined {
  const api = installed()
  if (!api) return undefined
  // What the library has in place of an SDK. prom-client brings the library, so that it is there in most programs without one.
  const nobody = new api.ProxyTracerProvider().getDelegate()
  return {
    get active() {
      return api.trace.getTracerProvider().getDelegate?.() !== nobody
    },
    begin(name, { from, ...options }) {
      const span = start(api, { name, options, within: api.propagation.extract(api.ROOT_CONTEXT, from) })
      // Without ids the trace of the client is passed on as it came.
      return NO_TRACE.test(span.traceId) ? undefined : span
    },
  }
}

/**
 * In the project that is served, or beside this package. In this order, because the copy that knows the SDK is the one of the project: a
 * newer one, which may come with another package, does not see an older one's.
 */
function installed(): Api | undefined {
  for (const place of [join(process.cwd(), 'package.json'), import.meta.url]) {
    try {
      return createRequire(place)(PACKAGE) as Api
    } catch {
      // It is not there.
    }
  }
  return undefined
}

const NO_TRACE = /^0*$/

interface Starting {
  readonly name: string
  readonly options: RecordOptions
  readonly within: Context
}

function start(api: Api, { name, options: { kind, attributes }, within }: Starting): RecordedSpan {
  const { SpanKind, SpanStatusCode, trace, context, propagation } = api
  const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL }
  const span = trace.getTracer('uamp').startSpan(name, { kind: kinds[kind], attributes: known(attributes) }, within)
  const inside = trace.setSpan(within, span)
  return {
    traceId: span.spanContext().traceId,
    get headers() {
      const headers: Record<string, string> = {}
      propagation.inject(inside, headers)
      return headers
    },
    begin: (inner, options) => start(api, { name: inner, options, within: inside }),
    set: (more) => span.setAttributes(known(more)),
    run: (code) => context.with(inside, code),
    end(error) {
      if (error !== undefined) {
        span.setAttributes({ 'error.type': error })
        span.setStatus({ code: SpanStatusCode.ERROR, message: error })
      }
      span.end()
    },
  }
}

function known(attributes: Attributes): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))
}
