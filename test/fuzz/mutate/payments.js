// @ts-check

const DEEP = 200

/** @param {object} value */
const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
const NOW = 4_000_000_000
const CLAIMS = {
  iss: 'http://127.0.0.1',
  sub: 'alice',
  aud: ['*'],
  iat: 1_700_000_000,
  exp: NOW,
  jti: 'ptok_1',
  payment: { balance: '1000', scheme: 'token', currency: 'USD' },
  max_depth: 5,
}

/** @param {object} header @param {object} [claims] @param {string} [signature] */
const token = (header, claims = {}, signature = 's'.repeat(342)) =>
  `${part({ typ: 'payment+jwt', alg: 'RS256', kid: 'k', ...header })}.${part({ ...CLAIMS, ...claims })}.${signature}`

/** Tokens that this server never made. */
export const FORGED = [
  token({}),
  token({ alg: 'none' }, {}, ''),
  token({ alg: 'HS256' }),
  token({ kid: '../../../key' }),
  token({ jwk: { kty: 'RSA', n: 'AQAB', e: 'AQAB' } }),
  token({}, { exp: 1 }),
  token({}, { aud: ['somebody-else'] }),
  token({}, { payment: { balance: '-1', scheme: 'token' }, max_depth: -1 }),
  token({}, { jti: 'x'.repeat(20_000) }),
  token({}, { jti: { toString: 'x' } }),
]

/** Amounts that are none, or that are at a bound. */
export const AMOUNTS = [
  '-1',
  '-0.000000001',
  '1e400',
  '1e-9',
  `0.${'0'.repeat(29)}1`,
  '0.0000000001',
  '9'.repeat(400),
  '0x10',
  '１２',
  '1,000',
  ' 1',
  '+1',
  '1.',
  '.5',
  '00.1',
  'Infinity',
]

/** @param {object} payload */
const header = (payload) => Buffer.from(JSON.stringify(payload)).toString('base64')
const AUTHORIZATION = {
  from: `0x${'1'.repeat(40)}`,
  to: `0x${'2'.repeat(40)}`,
  value: '-1',
  validAfter: '0',
  validBefore: '1',
  nonce: '0x',
}

/** @param {number} depth @returns {object} */
const deep = (depth) => (depth === 0 ? {} : { proof: deep(depth - 1) })

/** What stands for a payment of x402, as a header has it. */
export const PROOFS = [
  { x402Version: 1, scheme: 'exact', network: 'base', payload: { signature: `0x${'ab'.repeat(65)}`, authorization: AUTHORIZATION } },
  { x402Version: 2, accepted: { scheme: 'exact', network: 'eip155:8453', amount: '1e400' }, payload: {} },
  { x402Version: 1e9, scheme: [], network: {}, payload: null },
  { x402Version: 1, scheme: 'token', network: 'uamp', payload: { token: FORGED[0] } },
  { x402Version: 1, scheme: 'exact', payload: deep(DEEP) },
].map(header)

/** What a `payment` of an event is not. @type {readonly unknown[]} */
export const PAYMENTS = [
  ...FORGED.map((forged) => ({ scheme: 'token', token: forged })),
  ...AMOUNTS.map((amount) => ({ scheme: 'token', token: FORGED[0], amount })),
  { scheme: 'x402', network: 'base', proof: deep(DEEP) },
  { scheme: 'exact', proof: [[[[[]]]]] },
  { scheme: 'ap2', ap2_credential: deep(DEEP) },
  { scheme: 'account' },
  { scheme: 'free', amount: '-1' },
  { scheme: '__proto__', token: 'constructor' },
]
