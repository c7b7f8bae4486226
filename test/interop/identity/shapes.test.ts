/** The configs of docs/identity.md, with tokens as Keycloak, Entra and Auth0 make them. */
import { readFileSync } from 'node:fs'
import { CompactEncrypt } from 'jose'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import type { IssuerSettings } from '../../../src/auth/settings.ts'
import { checkConfig } from '../../../src/config/check.ts'
import { Problems } from '../../../src/config/problems.ts'
import { principalId } from '../../../src/core/basics/principal.ts'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import { byHeader, issuer, json, keyPair, WAYS } from '../../identity/support.ts'
import { startServer } from '../../support/server.ts'
import { verifies } from '../../support/verifies.ts'
import { SHAPES, type Shape } from './shapes.ts'

const GUIDE = readFileSync('docs/identity.md', 'utf8')

/** The settings that the guide has under this heading. */
function documented(heading: string): IssuerSettings {
  const [, text = ''] = new RegExp(`^### ${heading}\\n[^]*?^\`\`\`yaml\\n([^]*?)^\`\`\`$`, 'm').exec(GUIDE) ?? []
  const source = { file: 'docs/identity.md', value: parse(text) as unknown, lineOf: () => undefined }
  const problems = new Problems(source)
  const [settings] = checkConfig(source, problems).access?.issuers ?? []
  problems.throwIfAny()
  if (!settings) throw new Error(`docs/identity.md has no config for ${heading}`)
  return settings as IssuerSettings
}

/** A provider of this shape on this machine, and a server that is configured for it as the guide says. */
async function world(shape: Shape) {
  const pair = await keyPair('k1')
  const { url: base, published, asked } = await issuer(pair)
  const documents = shape.published(base, pair)
  published.answer = (request, response) => {
    const document = documents[request.url ?? '']
    if (document) json(response, document)
    else response.writeHead(404).end()
  }
  const seen: object[] = []
  const agent = defineAgent('demo', async function* ({ principal: { id, tenant, scopes } }) {
    seen.push({ id, tenant, scopes })
    yield 'Hello'
  })
  const name = shape.issuer(base)
  const settings = documented(shape.name)
  const { url } = await startServer(agent, { access: { issuers: [{ ...settings, issuer: name }] }, limits: { wrongTokenBurst: 1000 } })
  const sign = (claims: object, header: object = {}) => pair.sign(claims as never, { typ: 'JWT', ...header })
  return { pair, url, name, sign, seen, asked, documents, settings }
}

for (const shape of SHAPES) {
  verifies('verify.provider', `tokens of ${shape.name} say who calls and what they may do`, async () => {
    const { url, name, sign, seen, asked, documents } = await world(shape)
    for (const { name: which, claims, header, gives, refused } of shape.cases) {
      const token = await sign(claims(name), header)
      if (gives === undefined) {
        for (const way of Object.values(WAYS)) {
          const outcome = await way(url, token)
          expect(outcome, which).toMatchObject({ accepted: false, error: { message: expect.stringContaining(refused ?? '?') } })
        }
        continue
      }
      const mayCall = gives.scopes.some((word) => word === 'call' || word === 'write')
      const { status } = await byHeader(url, token)
      expect(status, which).toBe(mayCall ? 200 : 403)
      const { id, ...rest } = gives
      if (mayCall) expect(seen.at(-1), which).toEqual({ ...rest, id: principalId(name, id) })
    }
    // It was found by discovery, and nothing else was asked.
    expect(asked).toEqual(Object.keys(documents))
  })

  test(`a token of ${shape.name} by another key is refused`, async () => {
    const { url, name } = await world(shape)
    const mallory = await keyPair('k1')
    const [first] = shape.cases
    const token = await mallory.sign(first?.claims(name) as never, { typ: 'JWT' })
    for (const way of Object.values(WAYS)) {
      expect(await way(url, token)).toMatchObject({ accepted: false, error: { message: 'The signature of the token is wrong' } })
    }
  })
}

test('a token that only its provider can read is refused', async () => {
  const auth0 = SHAPES[2] as Shape
  const { url, name } = await world(auth0)
  const header = { alg: 'dir', enc: 'A256GCM', iss: name }
  const token = await new CompactEncrypt(new Uint8Array([1])).setProtectedHeader(header).encrypt(crypto.getRandomValues(new Uint8Array(32)))
  for (const way of Object.values(WAYS)) expect(await way(url, token)).toMatchObject({ accepted: false })
})

test('a provider whose discovery speaks for another tenant is not believed', async () => {
  const entra = SHAPES[1] as Shape
  const { url, name, sign, documents } = await world(entra)
  const [path = ''] = Object.keys(documents)
  Object.assign(documents[path] as object, { issuer: name.replace(/[0-9a-f-]{36}/, '{tenantid}') })
  const [first] = entra.cases
  const outcome = await byHeader(url, await sign(first?.claims(name) as object))
  expect(outcome).toMatchObject({ status: 503, error: { message: 'The keys of the identity provider cannot be read now' } })
})
