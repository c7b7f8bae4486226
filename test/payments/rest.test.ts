import { createRemoteJWKSet, jwtVerify } from 'jose'
import { expect } from 'vitest'
import { verifies } from '../support/verifies.ts'
import { startBank } from './rest-support.ts'

verifies('payments-rest:verify', 'a token is worth what it holds, until it is revoked', async () => {
  const { token, does } = await startBank()
  const { token: text, tokenId } = await token('5', { agents: ['shop', 'other'] })
  const said = await does('bob', 'POST verify', { token: text })
  expect(said).toMatchObject({ valid: true, balance: '5.00', currency: 'USD', agents: ['shop', 'other'], maxDepth: 5, tokenId })
  expect(Date.parse(said['expiresAt'] as string)).toBeGreaterThan(Date.now())
  expect(await does('bob', 'POST verify', { token: text, agent: 'third' })).toMatchObject({ valid: false, reason: 'token_invalid' })
  await does('alice', `DELETE tokens/${tokenId}`)
  expect(await does('bob', 'POST verify', { token: text })).toMatchObject({ valid: false, balance: '0.00', reason: 'token_invalid' })
})

verifies(
  ['payments-rest:lock', 'payments-rest:settle'],
  'a seller locks, locks more, settles in parts and gives the rest back',
  async () => {
    const { token, does, worth, balanceOf, ledger } = await startBank()
    const { token: text, tokenId } = await token('5')
    const opened = await does('shop', 'POST lock', { token: text, amount: '1' })
    const lockId = opened['lockId'] as string
    expect(opened).toMatchObject({ lockedAmountDollars: '1.00', currency: 'USD', agent: 'shop', state: 'open', remaining: '4.00' })
    expect(await does('shop', `PATCH lock/${lockId}`, { amount: '0.5' })).toMatchObject({ lockedAmountDollars: '1.50' })
    expect(await does('shop', 'POST settle', { lockId, amount: '0.2' })).toMatchObject({
      success: true,
      charged: '0.20',
      remaining: '1.30',
    })
    const last = { lockId, amount: '0.3', description: 'the rest', release: true }
    expect(await does('shop', 'POST settle', last)).toMatchObject({ charged: '0.30', remaining: '0.00' })
    expect(await does('shop', `GET lock/${lockId}`)).toMatchObject({ state: 'settled', lockedAmount: '0.00' })
    expect(await worth(tokenId)).toBe('4.50')
    expect(await balanceOf('shop', '?agent=shop')).toBe('0.50')
    const again = await does('shop', 'POST lock', { token: text, amount: '4.5' })
    expect(await does('shop', 'POST release', { lockId: again['lockId'] })).toMatchObject({ success: true, state: 'released' })
    const third = await does('shop', 'POST lock', { token: text, amount: '4.5' })
    expect(await does('shop', `DELETE lock/${third['lockId'] as string}`)).toMatchObject({ state: 'released' })
    expect(await worth(tokenId)).toBe('4.50')
    expect((await ledger.check()).problems).toEqual([])
  },
)

verifies('payments-rest:settle', 'usage costs what the agent asks for it', async () => {
  const bank = await startBank({}, { price: { input: '2', output: '10' } })
  const { token: text } = await bank.token('5')
  const lockId = await bank.lock(text, '1')
  const used = { type: 'llm', model: 'm', promptTokens: 1000, completionTokens: 100 }
  const usage = [used, { type: 'tool', amount: '0.02' }]
  expect(await bank.does('shop', 'POST settle', { lockId, usage })).toMatchObject({ charged: '0.023', remaining: '0.977' })
})

verifies('payments-rest:lock-payer', 'a payer locks an amount for an audience', async () => {
  const { does, ask, balanceOf } = await startBank()
  await does('bank', 'POST deposit', { principal: 'alice', amount: '3' })
  const said = await does('alice', 'POST lock', { amount: '1', audience: 'shop', expiresIn: 60 })
  expect(said).toMatchObject({ lockedAmount: '1.00', agents: ['shop'] })
  expect(Date.parse(said['expiresAt'] as string) - Date.now()).toBeLessThanOrEqual(60_000)
  expect(await balanceOf('alice')).toBe('2.00')
  expect((await ask('shop', 'POST lock', { token: said['token'], amount: '1' })).status).toBe(201)
})

verifies('payments-rest:settle-once', 'the same key again moves nothing, and has the same answer', async () => {
  const { token, lock, does, ask, balanceOf, refused } = await startBank()
  const lockId = await lock((await token('5')).token, '5')
  const first = { lockId, amount: '1', idempotencyKey: 'one' }
  const answers = await Promise.all(Array.from({ length: 16 }, () => does('shop', 'POST settle', first)))
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
  await does('shop', 'POST settle', { lockId, amount: '1', idempotencyKey: 'two' })
  expect(await does('shop', 'POST settle', first)).toEqual(answers[0])
  const byHeader = await ask('shop', 'POST settle', { lockId, amount: '1' }, { 'idempotency-key': 'one' })
  expect(byHeader.body).toEqual(answers[0])
  expect((await ask('shop', 'POST settle', first, { 'idempotency-key': 'two' })).status).toBe(400)
  expect(await refused('shop', 'POST settle', { ...first, amount: '2' })).toEqual([409, 'conflict'])
  for (const idempotencyKey of ['__proto__', 'constructor', 'toString']) {
    const own = { lockId, amount: '0.1', idempotencyKey }
    expect(await does('shop', 'POST settle', own)).toEqual(await does('shop', 'POST settle', own))
  }
  expect(await balanceOf('shop', '?agent=shop')).toBe('2.30')
  await does('shop', 'POST settle', { lockId, release: true })
  expect(await does('shop', 'POST settle', first)).toEqual(answers[0])
  expect(await refused('shop', 'POST settle', { ...first, idempotencyKey: 'three' })).toEqual([409, 'conflict'])
})

verifies('payments-rest:delegate', 'a token is split within its balance and its depth', async () => {
  const { token, does, refused, worth } = await startBank()
  const { token: text, tokenId } = await token('5', { maxDepth: 2 })
  const child = await does('bob', 'POST delegate', { parentToken: text, delegateTo: 'other', amount: '2' })
  expect(child).toMatchObject({ balance: '2.00', agents: ['other'], maxDepth: 1 })
  expect(await worth(tokenId)).toBe('3.00')
  const parentToken = child['token'] as string
  expect(await refused('bob', 'POST delegate', { parentToken, delegateTo: 'x', amount: '2.000000001' })).toEqual([
    402,
    'insufficient_balance',
  ])
  const deep = await does('bob', 'POST delegate', { parentToken, delegateTo: 'x', amount: '1', expiresIn: 366 * 86_400 })
  expect(Date.parse(deep['expiresAt'] as string)).toBeLessThanOrEqual(Date.parse(child['expiresAt'] as string))
  expect(await refused('bob', 'POST delegate', { parentToken: deep['token'], delegateTo: 'x', amount: '1' })).toEqual([403, 'forbidden'])
  // The money of all that were split off comes back, through those between.
  await does('alice', `DELETE tokens/${tokenId}`)
  expect(await refused('bob', 'POST delegate', { parentToken, delegateTo: 'x', amount: '1' })).toEqual([402, 'token_invalid'])
  expect((await does('alice', 'GET balance'))['balance']).toBe('5.00')
})

verifies(['payments-rest:tokens', 'uamp-transports.topup-endpoint'], 'tokens are made, listed, topped up and revoked', async () => {
  const { token, does, balanceOf } = await startBank()
  const { tokenId } = await token('1')
  for (let i = 0; i < 4; i++) await token('1')
  await does('bank', 'POST deposit', { principal: 'alice', amount: '2' })
  expect(await does('alice', `POST tokens/${tokenId}/topup`, { amount: '2' })).toMatchObject({
    success: true,
    added: '2.00',
    balance: '3.00',
  })
  const seen: unknown[] = []
  for (let cursor = ''; ;) {
    const page = await does('alice', `GET tokens?limit=2${cursor}`)
    seen.push(...(page['tokens'] as { id: string }[]).map(({ id }) => id))
    if (page['nextCursor'] === null) break
    cursor = `&cursor=${page['nextCursor'] as string}`
  }
  expect(seen).toHaveLength(5)
  expect(seen.at(-1)).toBe(tokenId)
  expect(await does('alice', `DELETE tokens/${tokenId}`)).toMatchObject({ success: true, status: 'ended', balance: '0.00' })
  expect(await balanceOf('alice')).toBe('3.00')
  // The operator tops up from outside, and what is left is the owner's.
  const made = await does('bank', 'POST tokens', { amount: '4', agents: '*', principal: 'bob' })
  expect(await does('bank', `POST tokens/${made['tokenId'] as string}/topup`, { amount: '1' })).toMatchObject({ balance: '5.00' })
  await does('bob', `DELETE tokens/${made['tokenId'] as string}`)
  expect(await balanceOf('bob')).toBe('5.00')
})

verifies('payments-rest:tokens', 'a token says what it is, and everybody can verify it with the keys of the server', async () => {
  const { url, token, does } = await startBank()
  const { token: text, tokenId } = await token('1.5', { agents: ['shop', 'other'], maxDepth: 2, expiresIn: 60 })
  const keys = createRemoteJWKSet(new URL(`${url}/.well-known/jwks.json`))
  const { payload, protectedHeader } = await jwtVerify(text, keys, { audience: 'shop', issuer: url })
  expect(protectedHeader).toMatchObject({ alg: 'RS256', typ: 'payment+jwt' })
  const payment = { balance: '1.50', scheme: 'token', currency: 'USD' }
  expect(payload).toMatchObject({ sub: 'alice', aud: ['shop', 'other'], jti: tokenId, payment, max_depth: 2 })
  expect([(payload.exp ?? 0) - (payload.iat ?? 0)]).toEqual([60])
  const child = await does('bob', 'POST delegate', { parentToken: text, delegateTo: 'other', amount: '0.5' })
  const split = await jwtVerify(child['token'] as string, keys, { audience: 'other', issuer: url })
  expect(split.payload).toMatchObject({ sub: 'alice', aud: ['other'], payment: { ...payment, balance: '0.50' }, max_depth: 1 })
  expect([split.payload.jti === tokenId, (split.payload.exp ?? 0) <= (payload.exp ?? 0)]).toEqual([false, true])
})

verifies('payments-rest:statements', 'movements come in pages, the newest first', async () => {
  const { token, lock, does } = await startBank()
  const { token: text, tokenId } = await token('5')
  const lockId = await lock(text, '2')
  await does('shop', 'POST settle', { lockId, amount: '1', description: 'a book', release: true })
  const types = async (who: 'alice' | 'shop', query: string): Promise<unknown[]> => {
    const { entries } = (await does(who, `GET statements?${query}`)) as { entries: { type: string; direction: string; amount: string }[] }
    return entries.map(({ type, direction, amount }) => `${type} ${direction} ${amount}`)
  }
  expect(await types('alice', '')).toEqual(['issue out 5.00', 'deposit in 5.00'])
  expect(await types('alice', `token=${tokenId}`)).toEqual(['release in 1.00', 'lock out 2.00', 'issue in 5.00'])
  expect(await types('shop', 'agent=shop')).toEqual(['payment in 1.00'])
  // The id of a lock is for whoever opened it.
  expect(JSON.stringify(await does('alice', `GET statements?token=${tokenId}`))).not.toContain(lockId)
  const first = await does('alice', 'GET statements?limit=1')
  const second = await does('alice', `GET statements?limit=1&cursor=${first['nextCursor'] as string}`)
  expect([...(first['entries'] as object[]), ...(second['entries'] as object[])]).toMatchObject([{ type: 'issue' }, { type: 'deposit' }])
})

verifies(
  ['payments-rest:transfers', 'payments-rest:settle-once'],
  'an operator fills and empties accounts, once for each key',
  async () => {
    const { does, balanceOf, refused } = await startBank()
    const principal = 'https://login.example/böb/\u{1F600}'
    const fill = { principal, amount: '2.5', idempotencyKey: 'k' }
    const both = await Promise.all([does('bank', 'POST deposit', fill), does('bank', 'POST deposit', fill)])
    expect(both[0]).toEqual(both[1])
    expect(await balanceOf('bank', `?principal=${encodeURIComponent(principal)}`)).toBe('2.50')
    expect(await refused('bank', 'POST deposit', { ...fill, amount: '3' })).toEqual([409, 'conflict'])
    expect(await does('bank', 'POST withdraw', { principal, amount: '2', idempotencyKey: 'k' })).toMatchObject({ balance: '0.50' })
    expect(await refused('bank', 'POST withdraw', { principal, amount: '0.6' })).toEqual([402, 'insufficient_balance'])
    expect(await balanceOf('bank', `?principal=${encodeURIComponent(principal)}&currency=EUR`)).toBe('0.00')
  },
)

verifies('payments-rest:refund', 'a payment is given back once, by parts, and by two at once', async () => {
  const { token, lock, does, ask, worth, refused, balanceOf, ledger } = await startBank()
  const { token: text, tokenId } = await token('5')
  const { paymentId } = await does('shop', 'POST settle', { lockId: await lock(text, '3'), amount: '3' })
  const part = { paymentId, amount: '0.5', idempotencyKey: 'p' }
  const parts = await Promise.all([does('shop', 'POST refund', part), does('shop', 'POST refund', part)])
  expect(parts[0]).toEqual(parts[1])
  expect(await worth(tokenId)).toBe('2.50')
  expect(await refused('shop', 'POST refund', { paymentId, amount: '2.500000001' })).toEqual([409, 'conflict'])
  const all = await Promise.all(Array.from({ length: 8 }, (_, at) => ask(at % 2 ? 'shop' : 'bank', 'POST refund', { paymentId })))
  expect(all.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(all.filter(({ status }) => status === 409)).toHaveLength(7)
  expect(await worth(tokenId)).toBe('5.00')
  expect(await balanceOf('shop', '?agent=shop')).toBe('0.00')
  expect((await ledger.check()).problems).toEqual([])
})

verifies('payments-rest:refund', 'what was paid with a token that has ended goes to where the rest of it went', async () => {
  const { token, lock, does, balanceOf } = await startBank()
  const { token: text, tokenId } = await token('5')
  const { paymentId } = await does('shop', 'POST settle', { lockId: await lock(text, '3'), amount: '3' })
  await does('alice', `DELETE tokens/${tokenId}`)
  await does('shop', 'POST refund', { paymentId })
  expect(await balanceOf('alice')).toBe('5.00')
})
