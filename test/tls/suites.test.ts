/** Suites that hold without TLS, once more over TLS 1.3 and HTTP/2. */
import { Authority } from '../support/certificates.ts'
import { everythingOverHttp2 } from '../support/over-http2.ts'

everythingOverHttp2(new Authority())

await import('../events.test.ts')
await import('../events-http.test.ts')
