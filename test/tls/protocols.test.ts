/** Every answer of every protocol, in every way that a client reads it, once more over TLS 1.3 and HTTP/2. */
import { Authority } from '../support/certificates.ts'
import { everythingOverHttp2 } from '../support/over-http2.ts'

everythingOverHttp2(new Authority())

await import('../contract/responses/runs.test.ts')
await import('../contract/responses/sessions.test.ts')
await import('../two-protocols.test.ts')
await import('../resume.test.ts')
await import('../omnia/session.test.ts')
await import('../openai/responses.test.ts')
