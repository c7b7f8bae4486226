// @ts-check
import { AMOUNTS, FORGED, PAYMENTS, PROOFS } from './payments.js'

/** @typedef {import('../../support/random.js').Random} Random */

const HUNDRED_KB = 100 * 1024

/** Keys that mean something to JavaScript, to a database or to a file system, and must mean nothing here. */
export const KEYS = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'then',
  'length',
  '',
  '.',
  '..',
  '\u0000',
  ' ',
  '$ref',
  'a'.repeat(5000),
]

/** Made when one is wanted: some are large. @type {readonly ((random: Random) => unknown)[]} */
const VALUES = [
  () => null,
  () => true,
  () => '',
  () => 0,
  () => -0,
  () => -1,
  () => 1e308,
  () => 5e-324,
  () => 2 ** 53,
  () => -(2 ** 63),
  () => 0.1,
  () => 1e12 + 1,
  () => 'NaN',
  () => 'Infinity',
  () => '-0',
  () => '1e999',
  () => [],
  () => ({}),
  () => [[]],
  () => [null],
  () => '\ud800',
  () => '\udfff x \ud800',
  () => '\u0000',
  () => 'a\u0000b',
  () => '\u202eRTL \u2066 مرحبا',
  () => '\ufeff\ufffe\uffff',
  () => '👩‍👩‍👧‍👦'.repeat(50),
  () => 'é'.normalize('NFD').repeat(100),
  () => '../../../../etc/passwd',
  () => 'C:\\Windows\\system32',
  () => '%00%2e%2e%2f',
  () => "'; DROP TABLE records; --",
  () => '<script>alert(1)</script>',
  () => '${7*7} {{7*7}}',
  () => '\r\nX-Injected: 1\r\n\r\n',
  () => '\u001b[2J\u001b]0;x\u0007',
  () => '1970-01-01T00:00:00Z',
  () => '-271821-04-20T00:00:00.000Z',
  () => '9999-12-31T23:59:60+99:99',
  () => 'http://[::1',
  () => 'http://127.0.0.1:1/',
  () => 'data:text/plain;base64,@@@',
  () => 'file:///dev/zero',
  () => 'javascript:0',
  () => 'A==',
  () => '=',
  () => 'x'.repeat(257),
  () => 'x'.repeat(65_537),
  () => 'x'.repeat(3 * HUNDRED_KB),
  () => '\\'.repeat(HUNDRED_KB),
  () => '\u0001'.repeat(HUNDRED_KB / 2),
  () => '💥'.repeat(HUNDRED_KB / 4),
  () => 'a,'.repeat(20_000),
  () => '(a+)+'.repeat(2_000),
  () => '/'.repeat(20_000),
  () => '['.repeat(1000),
  () => deep(40),
  () => deep(63),
  () => deep(5_000),
  () => Array.from({ length: 10_000 }, (_, n) => n),
  () => Array.from({ length: 10_000 }, () => ({})),
  () => Array.from({ length: 300 }, () => 'x'.repeat(300)),
  () => Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`k${n}`, n])),
  () => JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'),
  () => JSON.parse('{"then":"x","toString":"x","valueOf":null,"toJSON":"x","hasOwnProperty":1}'),
  () => ({ $ref: '#' }),
  (random) => random.pick(IDS),
  (random) => random.pick(AMOUNTS),
  (random) => random.pick(PAYMENTS),
  (random) => random.pick([...FORGED, ...PROOFS]),
  (random) => random.pick(COMMANDS),
  (random) => random.whole(-(2 ** 31), 2 ** 31),
  (random) => Array.from({ length: random.whole(1, 40) }, () => String.fromCharCode(random.whole(0, 0xffff))).join(''),
]

/** Ids of this caller's things, each where another kind is expected, and those of somebody else. */
const IDS = [
  '$session',
  '$response',
  '$task',
  '$waiting',
  '$context',
  '$upload',
  '$connection',
  '$acpSession',
  '$thread',
  '$run',
  '$omnia',
  '$foreignSession',
  '$foreignResponse',
  '$foreignTask',
  'sess_none',
  'resp_none',
  '00000000-0000-0000-0000-000000000000',
]

/** What the agents here take for a command. */
const COMMANDS = [
  '/count 9007199254740991',
  '/count 50 1',
  '/big 100000000',
  '/approve \u0000',
  '/tool clock {"a":',
  '/tool slow {"ms":1e9}',
  '/tool __proto__ {}',
  '/image',
  '/audio 30',
  '/video',
  '/file',
  '/json',
  '/state',
  '/think x',
  '/progress 10000',
  '/error not_supported',
  '/error \ud800',
  '/history',
  '/pay',
  'ask',
  'pay',
  'call',
  'plan',
]

/** @param {Random} random @returns {unknown} */
export function hostile(random) {
  return random.pick(VALUES)(random)
}

/** @param {number} levels */
function deep(levels) {
  /** @type {unknown} */
  let value = 'x'
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { a: value }
  return value
}
