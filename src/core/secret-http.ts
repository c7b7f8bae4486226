import type { HttpClient, HttpRequest } from './ports/http.ts'
import type { Secrets } from './secrets.ts'

/**
 * The client, but it remembers what it shows to the other side, which may repeat it. So a key that stands in somebody's code is
 * known before anybody can tell it, like one of a config.
 */
export function learningHttp<H extends HttpClient>(http: H, secrets: Pick<Secrets, 'learn'>): H {
  const request = (sent: HttpRequest): ReturnType<HttpClient['request']> => {
    secrets.learn(sent)
    return http.request(sent)
  }
  return { ...http, request }
}
