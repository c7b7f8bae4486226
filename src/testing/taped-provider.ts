import type { HttpClient } from '../core/ports/http.ts'
import type { Provider } from '../core/ports/provider.ts'
import { recorder, type RecordOptions } from './record-http.ts'
import { replayHttp, type ReplayOptions } from './replay-http.ts'

/** The provider as it is; what goes over the wire is written down. */
export function recordProvider(provider: Provider, options: RecordOptions): Provider {
  return through(provider, recorder(options))
}

/** The provider on a recording instead of the network: its requests are made, and answered from there. */
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
