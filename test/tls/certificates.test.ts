/** The files of a server with a certificate, and those of its clients. */
import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { request as requestHttps, type RequestOptions } from 'node:https'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import type { Access, Credentials, Principal } from '../../src/core/ports/access.ts'
import type { Route } from '../../src/core/ports/transport.ts'
import { serve } from '../../src/serve/index.ts'
import { Authority, type Pair } from '../support/certificates.ts'
import { webSocketOver } from '../support/over-http2.ts'
import { testServer, type TestServerOptions } from '../support/test-server.ts'
import { verifies } from '../support/verifies.ts'

const authority = new Authority()
const strangers = new Authority()

/** The serial number of the certificate that a new connection gets. */
async function serial(port: number): Promise<string> {
  const socket = connectTls({ port, host: '127.0.0.1', servername: 'localhost', ca: authority.pem })
  await once(socket, 'secureConnect')
  const { serialNumber } = socket.getPeerCertificate()
  socket.destroy()
  return serialNumber
}

const serialOf = ({ cert }: Pair): string => new X509Certificate(readFileSync(cert)).serialNumber

/** A pair in a folder of its own, and the file that the server reads of each. */
function placed(pair: Pair, name: string) {
  const files = { cert: join(authority.folder, `${name}.pem`), key: join(authority.folder, `${name}.key`) }
  copyFileSync(pair.cert, files.cert)
  copyFileSync(pair.key, files.key)
  return files
}

verifies('tls.reload', 'a certificate that is replaced by renaming goes to new connections, and those that are open go on', async () => {
  const [one, other] = [authority.issue(), authority.issue()]
  const files = placed(one, 'renamed')
  const { port, url, logged } = await testServer({ tls: { ...files, lookMs: 20 } })
  const session = connectHttp2(url, { ca: authority.pem })
  onTestFinished(() => session.destroy())
  await once(session, 'remoteSettings')
  expect(await serial(port)).toBe(serialOf(one))
  for (const each of ['cert', 'key'] as const) {
    copyFileSync(other[each], `${files[each]}.new`)
    renameSync(`${files[each]}.new`, files[each])
  }
  await expect.poll(() => serial(port)).toBe(serialOf(other))
  const request = session.request({ ':path': '/health' })
  const [headers] = (await once(request, 'response')) as [{ ':status': number }]
  expect(headers[':status']).toBe(200)
  expect(logged.map(({ message }) => message)).toContain('The certificate was replaced')
})

test('so does one that a link begins to lead to', async () => {
  const [one, other] = [authority.issue(), authority.issue()]
  const files = { cert: join(authority.folder, 'linked.pem'), key: join(authority.folder, 'linked.key') }
  const link = (to: Pair): void => {
    for (const each of ['cert', 'key'] as const) {
      symlinkSync(to[each], `${files[each]}.new`)
      renameSync(`${files[each]}.new`, files[each])
    }
  }
  link(one)
  const { port } = await testServer({ tls: { ...files, lookMs: 20 } })
  link(other)
  await expect.poll(() => serial(port)).toBe(serialOf(other))
})

verifies('tls.reload-broken', 'a broken or mismatched pair is logged, and the old one stays until it is whole', async () => {
  const [one, other] = [authority.issue(), authority.issue()]
  const files = placed(one, 'broken')
  const { port, logged } = await testServer({ tls: { ...files, lookMs: 20 } })
  const errors = () => logged.filter(({ level }) => level === 'error').map(({ message }) => message)
  copyFileSync(other.cert, files.cert)
  await expect.poll(errors).toEqual([expect.stringMatching(/stays as it was: .*broken.key \(tls.key\) is not the key of the certificate/)])
  expect(await serial(port)).toBe(serialOf(one))
  writeFileSync(files.key, 'no key')
  await expect.poll(errors).toHaveLength(2)
  expect(errors()[1]).toMatch(/broken.key \(tls.key\) holds no private key/)
  expect(await serial(port)).toBe(serialOf(one))
  copyFileSync(other.key, files.key)
  await expect.poll(() => serial(port)).toBe(serialOf(other))
  expect(errors()).toHaveLength(2)
})

test('a certificate that ends soon is a warning', async () => {
  const { logged } = await testServer({ tls: authority.issue() })
  expect(logged).toEqual([{ level: 'warn', message: expect.stringMatching(/^The certificate ends on .*: renew it$/), fields: undefined }])
})

verifies('tls.mistakes', 'files that cannot be used keep a server from starting, and the error names the option', async () => {
  const [one, other] = [authority.issue(), authority.issue()]
  const why = (tls: Pair & { clientCa?: string }) =>
    serve(demo(), { port: 0, data: 'memory', tls, log: () => undefined }).then(
      async (server) => server.close().then(() => 'it started'),
      (error: Error) => error.message,
    )
  expect(await why({ ...one, cert: '/nowhere.pem' })).toBe('/nowhere.pem (tls.cert) cannot be read (ENOENT): name a PEM file that this process may read') // prettier-ignore
  expect(await why({ ...one, key: other.key })).toMatch(/\(tls.key\) is not the key of the certificate in .* \(tls.cert\): give the two that belong together/) // prettier-ignore
  expect(await why({ cert: one.key, key: one.cert })).toMatch(/\(tls.cert\) holds no certificate in PEM form/)
  expect(await why({ ...one, key: one.cert })).toMatch(/\(tls.key\) holds no private key in PEM form/)
  expect(await why({ ...one, clientCa: one.key })).toMatch(/\(tls.clientCa\) holds no certificate in PEM form/)
})

/** An `Access` that knows clients by the URIs of their certificates. */
function byCertificate(): Access & { readonly seen: (Pick<Credentials, 'certificate' | 'certificateUris'> | undefined)[] } {
  const seen: Pick<Credentials, 'certificate' | 'certificateUris'>[] = []
  return {
    seen,
    authenticate: async ({ certificate, certificateUris }): Promise<Principal | undefined> => {
      seen.push({ certificate, certificateUris })
      const [id] = certificateUris ?? []
      return id === undefined ? undefined : { tenant: 'default', id, scopes: ['*'] }
    },
    authorize: () => true,
  }
}

const whoami: Route = {
  method: 'GET',
  path: '/whoami',
  access: 'request',
  handle: async (_, { principal }) => Response.json(principal.id),
}
const socket: Route = {
  method: 'WS',
  path: '/socket',
  access: 'request',
  handle: async (connection, { principal }) => connection.send([principal.id]),
}

async function mutual(options: TestServerOptions = {}) {
  const access = byCertificate()
  const tls = { ...authority.issue(), clientCa: authority.cert }
  const server = await testServer({ tls, access, routes: [whoami, socket], ...options })
  return { ...server, seen: access.seen }
}

const shown = ({ cert, key }: Pair) => ({ cert: readFileSync(cert), key: readFileSync(key) })

/** The answer over HTTP/1.1 and over HTTP/2. */
async function askBoth(url: string, options: Pick<RequestOptions, 'cert' | 'key'>): Promise<string[]> {
  const request = requestHttps(`${url}/whoami`, { ca: authority.pem, agent: false, ...options }).end()
  const [response] = (await once(request, 'response')) as [AsyncIterable<Buffer>]
  const session = connectHttp2(url, { ca: authority.pem, ...options } as object)
  onTestFinished(() => session.destroy())
  const texts: string[] = []
  for (const answer of [response, session.request({ ':path': '/whoami' })]) {
    let text = ''
    for await (const chunk of answer) text += String(chunk)
    texts.push(JSON.stringify((JSON.parse(text) as { error?: { code: string } }).error?.code ?? JSON.parse(text)))
  }
  return texts
}

verifies(['tls.client-optional', 'tls.client-names'], 'a client may show a certificate, whose thumbprint and URIs are told', async () => {
  const { url, seen } = await mutual()
  const client = authority.issue({ names: ['URI:did:web:agents.example', 'DNS:client.example', 'URI:https://agents.example/bots'] })
  expect(await askBoth(url, {})).toEqual(['"unauthorized"', '"unauthorized"'])
  expect(await askBoth(url, shown(client))).toEqual(['"did:web:agents.example"', '"did:web:agents.example"'])
  const certificate = createHash('sha256')
    .update(new X509Certificate(readFileSync(client.cert)).raw)
    .digest('base64url')
  expect(seen.at(-1)).toEqual({ certificate, certificateUris: ['did:web:agents.example', 'https://agents.example/bots'] })
  const session = connectHttp2(url, { ca: authority.pem, ...shown(client) })
  onTestFinished(() => session.destroy())
  const [message] = (await once(webSocketOver(session, '/socket'), 'message')) as [Buffer]
  expect(message.toString()).toBe('did:web:agents.example')
})

verifies('tls.client-refused', 'a client whose certificate another authority has issued, or that has ended, is disconnected', async () => {
  const { url, logged } = await mutual()
  for (const wrong of [strangers.issue({ names: ['URI:did:web:agents.example'] }), authority.issue({ days: -1 })]) {
    await expect(askBoth(url, shown(wrong))).rejects.toThrow()
  }
  const refusals = logged.filter(({ message }) => message === "A client's certificate was refused")
  expect(refusals.map(({ fields }) => fields?.['because'])).toEqual(expect.arrayContaining(['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'CERT_HAS_EXPIRED'])) // prettier-ignore
})
