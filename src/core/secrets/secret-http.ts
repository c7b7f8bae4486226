import type { HttpClient, HttpRequest } from '../ports/http.ts'

/**
 * The client, but it remembers what it shows to the other side, which may repeat it. So a key that stands in somebody's code is
 * known before anybody can tell it, like one of a config.
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
