import { expect } from 'vitest'
import { claimsFor, identityServer, issuer, keyPair } from '../identity/support.ts'
import { verifies } from '../support/verifies.ts'
import { company, message, pinned, post, signed, type Company } from './company.ts'

async function world() {
  const pair = await keyPair('k1')
  const { url: login, host } = await issuer(pair)
  const [partner, bob] = [await company(), await company(`did:web:${host.replace('127.0.0.1', 'localhost').replace(':', '%3A')}:bob`)]
  const { url } = await identityServer({
    tokens: { partner: 'secret-of-the-partner' },
    access: { agents: { allow: ['everyone'] } },
    outbound: { allow: [host] },
    insecureDev: true,
    envelope: { keys: pinned(partner, bob), senders: { [partner.did]: 'partner' } },
  })
  const { id: did } = (await (await fetch(`${url}/.well-known/did.json`)).json()) as { id: string }
  const send = async (by: Company, token: string): Promise<unknown> => {
    const response = await post(url, await signed(by, message(by, did)), { authorization: `Bearer ${token}` })
    return response.status === 202 ? 202 : response.json()
  }
  /** The token of somebody who calls themselves so at that issuer. */
  const called = async (sub: string): Promise<string> => pair.sign(claimsFor(url, login, { sub }))
  return { partner, bob, send, called }
}

verifies('envelope:sender-is-caller', 'who has the name of a sender at an issuer is not that sender', async () => {
  const { partner, bob, send, called } = await world()
  expect(await send(partner, 'secret-of-the-partner')).toBe(202)
  expect(await send(bob, await called('bob'))).toBe(202)
  // A message of others, taken again in another name, would run a second time.
  for (const sub of ['partner', partner.did]) {
    expect(await send(partner, await called(sub)), sub).toMatchObject({ code: '4.03', reason: 'sender' })
  }
  for (const sub of ['alice', '../bob', bob.did, 'bob?', 'bob#', 'alice/../bob']) {
    expect(await send(bob, await called(sub)), sub).toMatchObject({ code: expect.stringMatching(/^4\.0[13]$/) })
  }
})
