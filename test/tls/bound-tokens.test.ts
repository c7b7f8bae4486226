import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import type { IncomingMessage } from 'node:http'
import { request as requestHttps } from 'node:https'
import { expect, onTestFinished } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { claimsFor, issuer, keyPair } from '../identity/support.ts'
import { Authority, type Pair } from '../support/certificates.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'

const authority = new Authority()
const shown = ({ cert, key }: Pair) => ({ cert: readFileSync(cert), key: readFileSync(key) })

verifies('tls.bound-tokens', 'a token for the holder of a certificate works for that holder, over HTTP/1.1 and HTTP/2', async () => {
  const [alice, bob] = [authority.issue(), authority.issue()]
  const x5t = createHash('sha256')
    .update(new X509Certificate(readFileSync(alice.cert)).raw)
    .digest('base64url')
  const pair = await keyPair('k1')
  const from = await issuer(pair)
  const { url } = await startServer(demo(), {
    tls: { ...authority.issue(), clientCa: authority.cert },
    access: { agents: { allow: [from.url] } },
    outbound: { allow: [from.host] },
  })
  const token = await pair.sign(claimsFor(url, from.url, { cnf: { 'x5t#S256': x5t } }))
  const headers = { authorization: `Bearer ${token}` }
  const overHttp1 = async (client: object) => {
    const [response] = (await once(requestHttps(`${url}/v1/models`, { ca: authority.pem, agent: false, headers, ...client }).end(), 'response')) as [IncomingMessage] // prettier-ignore
    response.resume()
    return response.statusCode
  }
  const overHttp2 = async (client: object) => {
    const session = connectHttp2(url, { ca: authority.pem, ...client })
    onTestFinished(() => session.destroy())
    const [answer] = (await once(session.request({ ':path': '/v1/models', ...headers }), 'response')) as [{ ':status': number }]
    return answer[':status']
  }
  for (const status of [overHttp1, overHttp2]) {
    expect(await status(shown(alice))).toBe(200)
    expect(await status(shown(bob))).toBe(401)
    expect(await status({})).toBe(401)
  }
})
