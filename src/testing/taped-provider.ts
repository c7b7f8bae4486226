import type { HttpClient } from '../core/ports/http.ts'
import type { Provider } from '../core/ports/provider.ts'
import { recorder, type RecordOptions } from './record-http.ts'
import { replayHttp, type ReplayOptions } from './replay-http.ts'

/** Records the HTTP traffic of a provider. */
export function recordProvider(provider: Provider, options: RecordOptions): Provider {
  return through(provider, recorder(options))
}

/** Runs a provider on a recording instead of the network. */
export function replayProvider(provider: Provider, recording: string | Iterable<string>, options?: ReplayOptions): Provider {
  const http = replayHttp(recording, options)
  return through(provider, () => http)
}

function through(provider: Provider, client: (http: HttpClient) => HttpClient): Provider {
  return {
    name: provider.name,
    capabilities: (model) => provider.capabilities(model),
    generate: (request, { signal, sessionId, http }) => provider.generate(request, { signal, sessionId, http: client(http) }),
  }
}
