/** `uamp access explain`: why a server would accept or refuse a token. */
import { expect, test, vi } from 'vitest'
import { finished, project } from '../cli/run.ts'
import { claimsFor, issuer, keyPair } from './support.ts'

// Every command is a process of its own.
vi.setConfig({ testTimeout: 120_000 })

const OWN = 'https://agents.example'

async function world() {
  const pair = await keyPair('k1')
  const [provider, partner, stranger] = [await issuer(pair), await issuer(pair), await issuer(pair)]
  const config = {
    agents: ['./agent.mjs'],
    publicUrl: OWN,
    tokens: { root: 'a-secret-of-sixteen' },
    outbound: { allow: ['127.0.0.1'] },
    access: {
      issuers: [{ issuer: provider.url, claims: { tenant: 'org' }, scopes: { caller: ['call'] } }],
      agents: { allow: [partner.url], deny: [`${partner.url}/mallory`] },
    },
  }
  const agent = `import { demo } from 'uamp/agents/demo'\nexport default demo()\n`
  const cwd = await project({ 'uamp.config.json': JSON.stringify(config), 'agent.mjs': agent })
  const explain = async (token: string, ...args: readonly string[]) => {
    const { code, stdout, stderr } = await finished(['access', 'explain', ...args], { cwd, input: token })
    expect(stderr).toBe('')
    for (const part of token.split('.').filter((each) => each.length > 20)) expect(stdout).not.toContain(part)
    return { code, stdout }
  }
  const sign = (from: string, more: object = {}) => pair.sign(claimsFor(OWN, from, more))
  return { provider, partner, stranger, explain, sign }
}

test('a good token is explained step by step, with what it may do', async () => {
  const { provider, partner, explain, sign } = await world()
  const person = await explain(await sign(provider.url, { org: 'acme', scope: 'caller openid' }))
  expect(person.code).toBe(0)
  expect(person.stdout).toMatch(/✓ issuer: \S+ a provider in "access\.issuers"[^]*✓ signature: right\n\nAccepted\n/)
  expect(person.stdout).toMatch(/tenant: acme\n {2}agents: all\n {2}scopes: call\n {2}may: call\n/)
  const agent = await explain(await sign(partner.url, { aud: `${OWN}/agents/demo`, cnf: { jkt: 'x' } }), '--json')
  expect(agent.code).toBe(0)
  expect(JSON.parse(agent.stdout)).toMatchObject({
    accepted: true,
    steps: expect.arrayContaining([{ step: 'trust', found: `"allow" has ${partner.url}`, right: true }]),
    agents: ['demo'],
    needs: 'a DPoP proof with each request',
  })
  expect(await explain(`Bearer ${await sign(provider.url, { org: 'acme' })}\n`)).toMatchObject({ code: 0 })
  expect(await explain('a-secret-of-sixteen')).toMatchObject({ code: 0, stdout: expect.stringContaining('principal: root') })
})

test('a refused token ends with 3, the reason, and the rule that decided', async () => {
  const { provider, partner, stranger, explain, sign } = await world()
  const mallory = await keyPair('k1')
  const refused: readonly (readonly [token: string, ...parts: readonly (string | RegExp)[]])[] = [
    [await sign(provider.url), /✗ claims: "org" is missing; there are .*sub/, 'because: The token lacks the claim that names its tenant'],
    [
      await sign(provider.url, { org: 'acme', aud: 'https://other.example' }),
      '✓ time',
      `✗ audience: "aud" is https://other.example, and must be ${OWN}, or an agent below it`,
      'because: The token is for another server',
    ],
    [await sign(provider.url, { org: 'acme', exp: 1e300 }), '"exp" is missing', 'because: The token does not say when it ends'],
    [
      await sign(provider.url, { org: 'acme', exp: 1_000_000_000 }),
      /✗ time: "iat" is \S+, "exp" is 2001-09-09T01:46:40\.000Z; now it is \S+\n/,
      'denied: expired',
    ],
    [
      await (await keyPair('k2')).sign(claimsFor(OWN, provider.url, { org: 'acme' })),
      '✗ key: "kid" is k2',
      'because: The token is signed with a key that its issuer does not publish',
    ],
    [await sign(partner.url, { sub: 'mallory' }), `✗ trust: "deny" has ${partner.url}/mallory`, 'denied: untrusted'],
    [
      await sign(stranger.url),
      '✗ trust: no rule of "allow" names it',
      `is not this server itself, which is ${OWN}; --url names`,
      'because: This server does',
    ],
    [await mallory.sign(claimsFor(OWN, partner.url)), '✓ key: known by its kid', 'because: The signature of the token is wrong'],
    ['not-a-token', 'because: It is neither a JWT nor one of the secrets in the config'],
  ]
  for (const [token, ...parts] of refused) {
    const { code, stdout } = await explain(token)
    expect(code, stdout).toBe(3)
    for (const part of parts) expect(stdout).toMatch(part)
    expect(stdout).toContain('Refused')
  }
  expect(stranger.asked).toEqual([])
  partner.published.answer = (_, response) => response.writeHead(500).end()
  const { stdout } = await explain(await sign(partner.url))
  expect(stdout).toMatch(/✗ keys: The keys of an issuer could not be read: \S+ answered 500/)
  provider.published.answer = (_, response) => response.writeHead(500).end()
  const { stdout: unread } = await explain(await sign(provider.url, { org: 'acme' }))
  expect(unread).toMatch(/because: The keys of the identity provider cannot be read now\n/)
})

test('an empty token is called so', async () => {
  const ended = await finished(['access', 'explain'], { cwd: await project({}), input: '\n' })
  expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining('The token is empty: whatever should have printed it has not') })
})
