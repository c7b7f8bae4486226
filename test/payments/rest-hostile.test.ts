import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { createAgentApp, type ServeOptions } from '../../src/serve/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { asking, SECRETS, startBank } from './rest-support.ts'

verifies('payments-rest:others', 'what is of others is not found, and cannot be told from what is not there', async () => {
  const { token, lock, ask, does, worth, balanceOf } = await startBank()
  const { token: text, tokenId } = await token('5')
  const lockId = await lock(text, '2')
  const { paymentId } = await does('shop', 'POST settle', { lockId, amount: '1' })
  const asks = (id: { lock: string; token: string; who: string; payment: unknown }): [line: string, body?: object][] => [
    ['POST settle', { lockId: id.lock, amount: '1' }],
    ['POST settle', { lockId: id.lock, release: true }],
    ['POST release', { lockId: id.lock }],
    [`PATCH lock/${id.lock}`, { amount: '1' }],
    [`DELETE lock/${id.lock}`],
    [`GET lock/${id.lock}`],
    [`GET tokens/${id.token}`],
    [`DELETE tokens/${id.token}`],
    [`POST tokens/${id.token}/topup`, { amount: '1' }],
    [`GET statements?token=${id.token}`],
    [`GET statements?principal=${id.who}`],
    [`GET statements?agent=${id.who === 'alice' ? 'shop' : 'nobody'}`],
    [`GET balance?principal=${id.who}`],
    [`GET tokens?principal=${id.who}`],
    ['POST tokens', { amount: '1', agents: 'bob', principal: id.who }],
    ['POST refund', { paymentId: id.payment }],
  ]
  const there = asks({ lock: lockId, token: tokenId, who: 'alice', payment: paymentId })
  const missing = asks({ lock: 'lock_x', token: 'ptok_x', who: 'nobody', payment: 'pay_x' })
  for (const [at, [line, body]] of there.entries()) {
    const [line2 = '', body2] = missing[at] ?? []
    const [found, nothing] = [await ask('bob', line, body), await ask('bob', line2, body2)]
    expect([line, found.status]).toEqual([line, 404])
    expect(found).toEqual(nothing)
  }
  // Whoever owns the token may not take back what is promised to the seller.
  for (const [line, body] of there.slice(0, 6)) expect([line, (await ask('alice', line, body)).status]).toEqual([line, 404])
  expect(await worth(tokenId)).toBe('3.00')
  expect(await balanceOf('shop', '?agent=shop')).toBe('1.00')
})

verifies('payments-rest:operator', 'money is made by nobody but the operator', async () => {
  const { refused, does } = await startBank()
  for (const who of ['alice', 'shop'] as const) {
    expect(await refused(who, 'POST deposit', { principal: who, amount: '1' })).toEqual([403, 'forbidden'])
    expect(await refused(who, 'POST withdraw', { principal: who, amount: '1' })).toEqual([403, 'forbidden'])
    expect(await refused(who, 'POST tokens', { amount: '1', agents: 'shop', source: 'outside' })).toEqual([403, 'forbidden'])
    expect(await refused(who, 'POST tokens', { amount: '1', agents: 'shop' })).toEqual([402, 'insufficient_balance'])
  }
  expect(await refused(undefined, 'GET balance')).toEqual([401, 'unauthorized'])
  expect(await does('bank', 'POST deposit', { agent: 'shop', amount: '1' })).toMatchObject({ balance: '1.00' })
})

describe('who calls without a token', () => {
  const makes = { amount: '1', agents: 'demo' }
  verifies('payments-rest:operator', 'is the operator of a server on this machine that knows no tokens', async () => {
    const { does } = asking((await startServer(demo())).url)
    const { token, tokenId } = await does(undefined, 'POST tokens', makes)
    expect(await does(undefined, `POST tokens/${tokenId as string}/topup`, makes)).toMatchObject({ balance: '2.00' })
    expect(await does(undefined, 'POST lock', { token, amount: '1' })).toMatchObject({ agent: 'demo' })
  })
  test.each<[string, Partial<ServeOptions>]>([
    ['admits others', { tokens: SECRETS, allowAnonymous: true }],
    ['other machines can reach', { host: '0.0.0.0', allowAnonymous: true }],
    ['has a public URL', { publicUrl: 'http://localhost:8787' }],
    ['is behind a proxy', { trustProxy: ['127.0.0.1'] }],
  ])('has no money on a server that %s', async (_, options) => {
    const { port } = await startServer(demo(), options)
    const { ask, refused } = asking(`http://127.0.0.1:${port}`)
    for (const line of ['POST tokens', 'POST deposit', 'POST lock', 'GET balance', 'GET tokens', 'GET statements', 'POST refund']) {
      expect([line, ...(await refused(undefined, line, line.startsWith('GET') ? undefined : makes))]).toEqual([line, 403, 'forbidden'])
    }
    expect((await ask(undefined, 'POST verify', { token: 'x' })).body).toMatchObject({ valid: false })
  })
  test('has no money on the server of somebody else that it is mounted on', async () => {
    const app = createAgentApp(demo(), { data: 'memory', log: () => undefined })
    const server = createServer((request, response) => void app.handleRequest(request, response)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(async () => {
      server.close()
      await app.close({ graceMs: 0 })
    })
    const { refused } = asking(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    expect(await refused(undefined, 'POST tokens', makes)).toEqual([403, 'forbidden'])
  })
})

verifies('payments-rest:bad-input', 'what is wrong is refused, says where, and moves nothing', async () => {
  const bank = await startBank()
  const { ask, refused, does, ledger } = bank
  const { token: text, tokenId } = await bank.token('5')
  const lockId = await bank.lock(text, '1')
  const amounts = [
    0,
    1,
    0.5,
    -1,
    '0',
    '-1',
    '1e400',
    '1e2',
    'NaN',
    'Infinity',
    `0.${'1'.repeat(30)}`,
    '',
    ' 1',
    '1,5',
    '٣',
    null,
    {},
    [],
    true,
  ]
  const huge = ['9'.repeat(17), '9'.repeat(9000), '1000000000000001']
  const takers: [string, object][] = [
    ['POST lock', { token: text }],
    [`PATCH lock/${lockId}`, {}],
    ['POST delegate', { parentToken: text, delegateTo: 'x' }],
    ['POST tokens', { agents: 'shop' }],
    [`POST tokens/${tokenId}/topup`, {}],
  ]
  for (const amount of [...amounts, ...huge]) {
    for (const [line, body] of takers) {
      const { status, body: said } = await ask(line.includes('tokens') ? 'alice' : 'shop', line, { ...body, amount })
      expect([line, amount, status, said['error']]).toMatchObject([
        line,
        amount,
        400,
        { code: 'invalid_request', details: { param: 'amount' } },
      ])
    }
    for (const line of ['POST deposit', 'POST withdraw']) expect((await ask('bank', line, { principal: 'alice', amount })).status).toBe(400)
    if (amount !== '0') expect((await ask('shop', 'POST settle', { lockId, amount })).status).toBe(400)
  }
  const [head = '', payload = '', signature = ''] = text.split('.')
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>
  const richer = Buffer.from(JSON.stringify({ ...claims, payment: { balance: '500' } })).toString('base64url')
  const none = Buffer.from(JSON.stringify({ alg: 'none', typ: 'payment+jwt' })).toString('base64url')
  const garbage = [
    'x',
    'a.b.c',
    `${head}.${richer}.${signature}`,
    `${none}.${payload}.`,
    `${text}x`,
    SECRETS.alice,
    `${head}.${payload}.AAAA`,
  ]
  for (const token of garbage) {
    expect(await refused('shop', 'POST lock', { token, amount: '1' })).toEqual([402, 'token_invalid'])
    expect(await refused('shop', 'POST delegate', { parentToken: token, delegateTo: 'x', amount: '1' })).toEqual([402, 'token_invalid'])
    expect((await ask('shop', 'POST verify', { token })).body).toMatchObject({ valid: false, balance: '0.00' })
  }
  const wrong: [line: string, body: unknown, status: number, code: string][] = [
    ['POST lock', { token: text, amount: '1', agent: 'other' }, 402, 'token_invalid'],
    ['POST lock', { token: text, amount: '1', currency: 'EUR' }, 402, 'token_invalid'],
    ['POST lock', { token: text, amount: '1', currency: '<>' }, 400, 'invalid_request'],
    ['POST lock', { token: text, amount: '4.000000001' }, 402, 'insufficient_balance'],
    ['POST lock', { token: 7, amount: '1' }, 400, 'invalid_request'],
    ['POST lock', { amount: '1' }, 400, 'invalid_request'],
    ['POST lock', { token: text, amount: '1', expiresIn: -1 }, 400, 'invalid_request'],
    ['POST lock', { token: text, amount: '1', expiresIn: 1e300 }, 400, 'invalid_request'],
    ['POST settle', { lockId, amount: '1.000000001' }, 402, 'insufficient_balance'],
    ['POST settle', { lockId }, 400, 'invalid_request'],
    ['POST settle', { lockId: 'lock_x', amount: '1' }, 404, 'not_found'],
    ['POST settle', { lockId: [lockId], amount: '1' }, 400, 'invalid_request'],
    ['POST settle', { lockId, usage: [] }, 400, 'invalid_request'],
    ['POST settle', { lockId, usage: [{ promptTokens: 1 }] }, 400, 'invalid_request'],
    ['POST settle', { lockId, usage: [{ amount: '0.1' }], amount: '1' }, 400, 'invalid_request'],
    ['POST settle', { lockId, usage: [{ promptTokens: -1 }] }, 400, 'invalid_request'],
    ['POST settle', { lockId, amount: '1', idempotencyKey: 'a b' }, 400, 'invalid_request'],
    ['POST settle', { lockId, amount: '1', chargeType: 'gift' }, 400, 'invalid_request'],
    ['POST tokens', { amount: '1', agents: [] }, 400, 'invalid_request'],
    ['POST tokens', { amount: '1', agents: Array.from({ length: 17 }, (_, at) => `a${at}`) }, 400, 'invalid_request'],
    ['POST tokens', { amount: '1', agents: 'x'.repeat(129) }, 400, 'invalid_request'],
    ['POST tokens', { amount: '1', agents: 'shop', maxDepth: 1.5 }, 400, 'invalid_request'],
    ['POST tokens', { amount: '1', agents: 'shop', maxDepth: 17 }, 400, 'invalid_request'],
    ['POST tokens', { amount: '1', agents: 'shop', expiresIn: 1e12 }, 400, 'invalid_request'],
    ['POST tokens', '[]', 400, 'invalid_request'],
    ['POST tokens', '{', 400, 'invalid_request'],
    ['POST tokens', '', 400, 'invalid_request'],
    ['POST tokens', 'x'.repeat(20_000), 413, 'too_large'],
    ['POST refund', { paymentId: 'pay_x' }, 404, 'not_found'],
    ['GET tokens?limit=0', undefined, 400, 'invalid_request'],
    ['GET tokens?limit=101', undefined, 400, 'invalid_request'],
    ['GET tokens?limit=1e9', undefined, 400, 'invalid_request'],
    ['GET tokens?cursor=x', undefined, 400, 'invalid_request'],
    [`GET tokens?cursor=${Buffer.from('["a"]').toString('base64url')}`, undefined, 400, 'invalid_request'],
    [`GET statements?cursor=${'a'.repeat(3000)}`, undefined, 400, 'invalid_request'],
    ['GET statements?currency=1', undefined, 400, 'invalid_request'],
    ['GET statements?agent=shop&principal=shop', undefined, 400, 'invalid_request'],
    ['GET statements?token=', undefined, 400, 'invalid_request'],
    ['GET tokens/%2e%2e%2f', undefined, 404, 'not_found'],
    ['GET tokens/__proto__', undefined, 404, 'not_found'],
  ]
  for (const [line, body, status, code] of wrong)
    expect([line, body, ...(await refused('shop', line, body))]).toEqual([line, body, status, code])
  for (const principal of ['', 7, 'a\ud800', 'a\u0000b', 'x'.repeat(1025)])
    expect(await refused('bank', 'POST deposit', { principal, amount: '1' })).toEqual([400, 'invalid_request'])
  expect(await bank.worth(tokenId)).toBe('4.00')
  expect(await does('shop', `GET lock/${lockId}`)).toMatchObject({ lockedAmount: '1.00' })
  expect((await ledger.check()).problems).toEqual([])
})

verifies('payments-rest:secrets', 'the text of a token is in no list, log or error', async () => {
  const { token, lock, ask, does, logged } = await startBank({ accessLog: true })
  const { token: text, tokenId } = await token('5')
  const said = [
    await does('alice', 'GET tokens'),
    await does('alice', `GET tokens/${tokenId}`),
    await does('alice', `GET statements?token=${tokenId}`),
    await does('shop', 'POST verify', { token: text }),
    await does('shop', `GET lock/${await lock(text, '1')}`),
    await ask('shop', 'POST lock', { token: `${text}x`, amount: '1' }),
    await ask('shop', 'POST lock', { token: text, amount: '100' }),
    await ask('shop', 'POST lock', { token: text, amount: text }),
    await ask('shop', 'POST settle', { lockId: text.slice(0, 200), amount: '1' }),
    await ask('alice', 'POST tokens/x/topup', { amount: '1', source: text }),
    await does('alice', `DELETE tokens/${tokenId}`),
  ]
  const [, , signature = ''] = text.split('.')
  for (const each of [...said, ...logged]) {
    expect(JSON.stringify(each)).not.toContain(signature.slice(0, 40))
    expect(JSON.stringify(each)).not.toContain(text.slice(0, 100))
  }
})
