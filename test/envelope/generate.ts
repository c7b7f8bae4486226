/** Messages of every content that may be signed, and every way to write them. */
import fc from 'fast-check'
import { randomFrom } from '../support/random.js'
import { INTENTS, type Unsigned } from '../../src/envelope/schema.ts'

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom(
    '',
    '"',
    '\\',
    '/',
    '\u0000\u001f\u007f',
    '\u2028\u2029',
    '\b\t\n\f\r',
    'é',
    'e\u0301',
    '😀',
    '\uffff',
    '</script>',
    '1e400',
  ),
)
/** Names that two orders sort in the same way, and that are no prototype. */
const name = fc
  .oneof(
    fc.string({ unit: 'grapheme-ascii' }),
    text,
    fc.constantFrom('\ufb33', '\ud7ff', '\ue000', '1', '10', '2', 'A', 'a', 'ä', 'sig', 'toString'),
  )
  .filter((each) => !/[\ud800-\udfff]/.test(each) && !['__proto__', 'constructor', 'prototype'].includes(each))
const number = fc.oneof(
  fc.maxSafeInteger(),
  fc.integer({ min: -100, max: 100 }),
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((each) => !Number.isInteger(each) || Number.isSafeInteger(each)),
  fc.constantFrom(0, -0, 5e-324, 1e-7, 0.000001, 2.5e-10, 4.35, 0.1 + 0.2, 333333333.3333333, 9007199254740991, 4503599627370495.5),
)
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 4, depthIdentifier: 'json' },
    fc.oneof(text, number, fc.boolean(), fc.constant(null)),
    fc.array(tie('json'), { maxLength: 4, depthIdentifier: 'json' }),
    fc.dictionary(name, tie('json'), { maxKeys: 5, depthIdentifier: 'json', noNullPrototype: true }),
  ),
}))
/** The same below up to twenty levels more. */
const deep = fc
  .tuple(json, fc.nat({ max: 20 }), name)
  .map(([value, levels, key]) =>
    Array.from({ length: levels }).reduce((inner: unknown, _, at) => (at % 2 === 0 ? [inner] : { [key]: inner }), value),
  )
const ext = fc.dictionary(name, deep, { maxKeys: 4, noNullPrototype: true })

const id = fc
  .tuple(fc.uuid({ version: 4 }), fc.constantFrom('', 'urn:uuid:', 'URN:UUID:'), fc.boolean())
  .map(([uuid, prefix, isUpper]) => prefix + (isUpper ? uuid.toUpperCase() : uuid))
const ts = fc
  .tuple(
    fc.date({ min: new Date('2000-01-01'), max: new Date('2099-12-31'), noInvalidDate: true }),
    fc.constantFrom('.000Z', '.5Z', 'Z', '+00:00', '.123456789Z'),
  )
  .map(([date, end]) => date.toISOString().slice(0, 19) + end)
const uri = fc.oneof(
  fc.webUrl({ withFragments: true, withQueryParameters: true }),
  fc.constantFrom('did:web:worker.example', 'did:web:A.example%3A8443:bob', 'urn:x:y'),
)
const hash = fc
  .string({ unit: fc.constantFrom(...'0123456789abcdef'.split('')), minLength: 64, maxLength: 64 })
  .map((hex) => `sha256:${hex}`)

/** A message from this sender. Members that may be missing are there in some. */
export const messages = (from: string): fc.Arbitrary<Unsigned> =>
  fc.record(
    {
      id,
      ts,
      from: fc.constant(from),
      to: fc.array(uri, { minLength: 1, maxLength: 64, size: 'small' }),
      intent: fc.constantFrom(...INTENTS),
      body: fc.record(
        { type: text.filter((each) => each.length <= 256), content: text, encoding: text, compression: text, more: deep },
        { requiredKeys: ['type', 'content'], noNullPrototype: true },
      ),
      reply_to: id,
      context: fc.array(fc.record({ id, hash, more: json }, { requiredKeys: ['id', 'hash'], noNullPrototype: true }), { maxLength: 3 }),
      stream_id: fc.string({ unit: fc.constantFrom(...'aZ09-_./!~"\\<'.split('')), minLength: 1, maxLength: 128 }),
      delta_window: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
      cap_token: text,
      ext,
    },
    { requiredKeys: ['id', 'ts', 'from', 'to', 'intent', 'body'], noNullPrototype: true },
  ) as fc.Arbitrary<Unsigned>

/** Chooses one of so many. */
type Choose = (count: number) => number

export function chooser(seed: number): Choose {
  const { whole } = randomFrom(seed)
  return (count) => whole(0, count - 1)
}

const SPACES = ['', '', '', ' ', '\n', '\r\n\t', '  ']

/** JSON of a value, in one of all the ways to write it: the order of members, white space, escapes, and forms of numbers. */
export function written(value: unknown, choose: Choose): string {
  const space = () => SPACES[choose(SPACES.length)]
  const around = (inner: string) => `${space()}${inner}${space()}`
  if (typeof value === 'string') return around(quoted(value, choose))
  if (typeof value === 'number') return around(digits(value, choose))
  if (Array.isArray(value)) return around(`[${value.map((each) => written(each, choose)).join()}]`)
  if (typeof value !== 'object' || value === null) return around(JSON.stringify(value))
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  for (let at = members.length - 1; at > 0; at--) {
    const other = choose(at + 1)
    const [one, two] = [members[at], members[other]]
    if (one && two) [members[at], members[other]] = [two, one]
  }
  return around(`{${members.map(([key, member]) => `${around(quoted(key, choose))}:${written(member, choose)}`).join()}}`)
}

function quoted(value: string, choose: Choose): string {
  let inner = ''
  for (const unit of value.split('')) {
    const hex = unit.charCodeAt(0).toString(16).padStart(4, '0')
    const way = choose(12)
    if (way === 0) inner += `\\u${hex}`
    else if (way === 1) inner += `\\u${hex.toUpperCase()}`
    else if (way === 2 && unit === '/') inner += '\\/'
    // A pair that is half escaped would be two halves in between.
    else inner += /[\ud800-\udfff]/.test(unit) ? unit : JSON.stringify(unit).slice(1, -1)
  }
  return inner.isWellFormed() ? `"${inner}"` : JSON.stringify(value)
}

/** The same number in other digits. */
function digits(value: number, choose: Choose): string {
  const plain = Object.is(value, -0) ? '-0' : JSON.stringify(value)
  const ways = [
    plain,
    plain.replace('e', 'E'),
    value.toExponential(),
    value.toExponential().replace('e', 'E'),
    /[.e]/.test(plain) ? plain : `${plain}.000`,
  ]
  const way = ways[choose(ways.length)] ?? plain
  return Number(way) === value ? way : plain
}
