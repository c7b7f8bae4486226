import { expect, test, vi } from 'vitest'
import { finished, project, serving } from '../cli/run.ts'
import { verifies } from '../support/verifies.ts'
import { ACCESS_TOKEN, basic, claimsOf, EXCHANGE, postForm, tokenFrom } from './oauth.ts'

// Every command is a process of its own.
vi.setConfig({ testTimeout: 120_000 })

const ALICE = ['alice', 'alice-0123456789abcdef'] as const
const SHOP = ['shop', 'shop-0123456789abcdef'] as const

const CONFIG = `
agents: [./agent.mjs]
tokens: { alice: alice-0123456789abcdef }
access:
  algorithm: EdDSA
  clients:
    shop: { secret: '\${SHOP_SECRET}', scopes: [read] }
    laptop: { secret: '\${SHOP_SECRET}', scopes: ['host:helper'] }
`
const AGENT = `import { demo } from 'uamp/agents/demo'
export default demo()
`

interface Key {
  readonly purpose: string
  readonly kid: string
  readonly alg: string
  readonly state: string
}

async function folder() {
  const cwd = await project({ 'uamp.config.yaml': CONFIG, 'agent.mjs': AGENT })
  const uamp = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await finished([...args, '--data', 'd'], { cwd })
    expect(code, stderr).toBe(0)
    return stdout
  }
  /** Those of tokens. */
  const keys = async () =>
    (JSON.parse(await uamp('keys', 'list', '--json')) as { keys: Key[] }).keys.filter(({ purpose }) => purpose === 'tokens')
  const start = () => serving(['--data', 'd'], { cwd, env: { SHOP_SECRET: SHOP[1] } })
  return { cwd, uamp, keys, start }
}

/** Whether the server takes a token for a good one of its own. */
const isGood = async (url: string, subject_token: string) =>
  (
    await postForm(
      `${url}/auth/token`,
      { grant_type: EXCHANGE, subject_token, subject_token_type: ACCESS_TOKEN, scope: 'read' },
      { authorization: basic(...ALICE) },
    )
  ).status === 200

verifies('identity.keys-running', 'keys are rotated and revoked while a server runs, and while none does', async () => {
  const { uamp, keys, start } = await folder()
  const { cli, url } = await start()
  expect(await uamp('keys', 'list')).toContain('There are no keys yet')
  const token = await tokenFrom(url, SHOP)
  const [first, next] = await keys()
  expect([first?.state, first?.alg, next?.state]).toEqual(['signs', 'EdDSA', 'next'])

  expect(await uamp('keys', 'rotate', 'tokens')).toBe(`tokens: ${next?.kid} signs from now on.\n`)
  expect((await claimsOf(url, await tokenFrom(url, SHOP))).header).toMatchObject({ kid: next?.kid })
  expect(await isGood(url, token)).toBe(true)

  expect(await uamp('access', 'revoke', '--key', first?.kid ?? '')).toContain('It was a key of this server')
  expect(await isGood(url, token)).toBe(false)
  const published = (await (await fetch(`${url}/.well-known/jwks.json`)).json()) as { keys: Key[] }
  expect(published.keys.map(({ kid }) => kid)).not.toContain(first?.kid)
  expect((await keys()).map(({ state }) => state)).toEqual(['signs', 'next'])

  cli.signal('SIGTERM')
  await cli.exit()
  const stopped = await keys()
  expect(await uamp('keys', 'rotate')).toContain(`tokens: ${stopped[1]?.kid} signs from now on.\n`)
  expect((await keys()).map(({ alg }) => alg)).toEqual(['EdDSA', 'EdDSA', 'EdDSA'])
  const { url: again } = await start()
  expect((await claimsOf(again, await tokenFrom(again, SHOP))).header).toMatchObject({ kid: stopped[1]?.kid })
  expect(await isGood(again, token)).toBe(false)
})

verifies(['identity.revoke-token', 'identity.revoke-principal'], 'tokens and callers are revoked and restored by command', async () => {
  const { cwd, uamp, start } = await folder()
  const { cli, url } = await start()
  const models = (at: string) => fetch(`${at}/v1/models`, { headers: { authorization: `Bearer ${ALICE[1]}` } })
  const token = await tokenFrom(url, SHOP)
  const { jti, iss } = await claimsOf(url, token)
  const told = await finished(['access', 'revoke', '--token', '-', '--data', 'd'], { cwd, input: token })
  expect([told.code, told.stdout]).toEqual([0, `The token ${jti} is revoked.\n`])
  expect(await isGood(url, token)).toBe(false)
  const chat = async (secret: string) => (await finished(['chat', '-q', url, 'hello'], { cwd, env: { UAMP_TOKEN: secret } })).stderr
  expect(await chat(token)).toBe(`error: ${url} refuses this token: The token was revoked\n`)
  expect(await chat('eyJh.e30.x')).toMatch(/refuses this token: The token is not a JWT that can be read/)
  expect((await models(url)).status).toBe(200)
  await uamp('access', 'revoke', '--principal', 'alice')
  expect((await models(url)).status).toBe(401)
  expect(await chat(ALICE[1])).toBe(`error: ${url} refuses this token: The access was revoked\n`)
  expect(await uamp('access', 'revoked')).toMatch(new RegExp(`^token +${jti} +${iss} .*\\nprincipal +alice +`, 'm'))

  cli.signal('SIGTERM')
  await cli.exit()
  const { url: again } = await start()
  expect((await models(again)).status).toBe(401)
  expect(await uamp('access', 'restore', '--principal', 'alice')).toBe('The principal alice is no longer revoked.\n')
  expect((await models(again)).status).toBe(200)
})

test('access explain names the agents that a token may host', async () => {
  const { cwd, start } = await folder()
  const { url } = await start()
  const token = await tokenFrom(url, ['laptop', SHOP[1]])
  const { iss } = await claimsOf(url, token)
  const args = ['access', 'explain', '--url', String(iss)]
  const { code, stdout, stderr } = await finished(args, { cwd, env: { SHOP_SECRET: SHOP[1] }, input: token })
  expect(code, stderr).toBe(0)
  expect(stdout).toMatch(/^ {2}may: host:helper$/m)
})

test('mistakes are told', async () => {
  const { cwd } = await folder()
  const run = async (...args: readonly string[]) => (await finished([...args, '--data', 'd'], { cwd })).stderr
  expect(await run('keys', 'list')).toContain('There is no data in d')
  expect(await run('keys', 'rotate', 'cookies')).toContain('choose one of tokens, responses, cards, envelopes')
  expect(await run('access', 'revoke')).toContain('Choose one')
  expect(await run('access', 'revoke', '--token', 'a.b.c')).toContain('The token cannot be read')
  for (const empty of ['--token', '--key', '--principal']) {
    const { code, stdout, stderr } = await finished(['access', 'revoke', empty, '', '--data', 'd'], { cwd })
    expect([code, stdout, stderr]).toEqual([1, '', 'error: The id is empty: give the one to look for\n'])
  }
  const { code, stderr } = await finished(['access', 'revoke', '--token', '-', '--data', 'd'], { cwd, input: '\n' })
  expect([code, stderr]).toEqual([1, 'error: The id is empty: give the one to look for\n'])
})

test('a secret is not taken for the id of a token, which would refuse nobody and keep the secret', async () => {
  const { cwd, start, uamp } = await folder()
  await start()
  const { code, stdout, stderr } = await finished(['access', 'revoke', '--token', ALICE[1], '--data', 'd'], { cwd })
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toContain('revoke its principal')
  expect(await uamp('access', 'revoked')).toBe('Nothing is revoked.\n')
})
