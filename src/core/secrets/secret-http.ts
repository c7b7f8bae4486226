import type { HttpClient, HttpRequest } from '../ports/http.ts'

/**
 * Wraps a client so that it remembers the secrets that it sends, because the other side may repeat them. So a key that is written in
 * somebody's code is known in time, like one from the configuration.
 */
export function learningHttp(http: HttpClient, secrets: { learn(request: HttpRequest): void }): HttpClient {
  const learning = (client: HttpClient) => (sent: HttpRequest) => {
    secrets.learn(sent)
    return client.request(sent)
  }
  const { guarded } = http
  return {
    request: learning(http),
    ...(guarded && { guarded: { request: learning(guarded), refuses: (url) => guarded.refuses(url) } }),
  }
}
