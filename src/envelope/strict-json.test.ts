import { expect, test } from 'vitest'
import { outcome } from '../../test/support/envelopes.ts'
import { verifies } from '../../test/support/verifies.ts'
import { limits } from '../protocol/limits.ts'
import { strictObject } from './strict-json.ts'

const bytes = (...parts: readonly (string | readonly number[])[]): Uint8Array =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Uint8Array.from(part))))

/** An object that is the first of so many levels. */
const nested = (levels: number, inmost = '1'): string => '{"a":' + '['.repeat(levels - 2) + `{"b":${inmost}}` + ']'.repeat(levels - 2) + '}'

const REFUSED: Readonly<Record<string, readonly (readonly [what: string, text: string | Uint8Array])[]>> = {
  '4.00 duplicate': [
    ['a member twice', '{"a":1,"a":1}'],
    ['a member twice, apart', '{"a":1,"b":{"c":[]},"d":"}","a":2}'],
    ['a member twice, once escaped', '{"a":1,"\\u0061":2}'],
    ['a member twice, escaped in two ways', '{"/":1,"\\/":2}'],
    ['a member twice, digits of the escape in another case', '{"\\u00e4":1,"\\u00E4":2}'],
    ['a quote in the name of a member twice', '{"\\"":1,"\\u0022":2}'],
    ['a backslash in the name of a member twice', '{"\\\\":1,"\\u005c":2}'],
    ['a member without a name twice', '{"":1,"":2}'],
    ['in an object in an array', '{"a":[1,{"b":1,"b":1}]}'],
    ['behind an object that is closed', '{"a":{"b":1},"c":{"d":{"e":1},"d":1}}'],
    ['on the deepest level', nested(32, '1,"c":1,"c":2')],
  ],
  '4.00 surrogate': [
    ['a high half, escaped', '{"a":"\\ud800"}'],
    ['a low half, escaped', '{"a":["\\uDFFF"]}'],
    ['the halves in the wrong order', '{"a":"\\ude00\\ud83d"}'],
    ['a half before a pair', '{"a":"\\ud83d\\ud83d\\ude00"}'],
    ['a half on the deepest level', nested(32, '"\\ud800"')],
    ['a half that is not escaped', '{"a":"\ud800"}'],
    ['a half that is not escaped, in a name', '{"\udfff":1}'],
  ],
  '4.00 name': [
    ['half a pair in a name', '{"\\ud800":1}'],
    ['a pair in a name', '{"😀":1}'],
    ['a pair in a name, escaped', '{"\\ud83d\\ude00":1}'],
  ],
  '4.00 depth': [
    ['33 levels', nested(33)],
    ['33 levels of objects', '{"a":'.repeat(33) + '1' + '}'.repeat(33)],
    ['brackets alone', '['.repeat(10_000_000)],
  ],
  '4.00 number': [
    ['beyond 2^53', '{"a":9007199254740992}'],
    ['beyond 2^53, below zero', '{"a":[-9007199254740993]}'],
    ['a whole number with a fraction', '{"a":9007199254740993.0}'],
    ['a whole number with an exponent', '{"a":1e30}'],
    ['beyond a double', '{"a":1e400}'],
    ['beyond a double, below zero', '{"a":-1e400}'],
    ['no number', '{"a":-}'],
    ['two points', '{"a":1.2.3}'],
    ['-Infinity', '{"a":-Infinity}'],
    ['10 MB of digits', `{"a":${'9'.repeat(10_000_000)}}`],
    ['10 MB of points', `{"a":${'1.'.repeat(5_000_000)}}`],
  ],
  '4.00 prototype': [
    ['__proto__', '{"__proto__":{}}'],
    ['__proto__, escaped', '{"ext":{"\\u005f_proto__":{}}}'],
    ['constructor', '{"a":[{"constructor":1}]}'],
    ['prototype', '{"prototype":1}'],
  ],
  '4.00 not_json': [
    ['a byte order mark', bytes([0xef, 0xbb, 0xbf], '{}')],
    ['a byte order mark in a text', '\ufeff{}'],
    ['no bytes', bytes()],
    ['white space', ' \r\n'],
    ['an array', '[{}]'],
    ['null', 'null'],
    ['a text', '"{}"'],
    ['two objects', '{}{}'],
    ['something behind it', '{} x'],
    ['a NUL behind it', '{}\0'],
    ['a line break in a text', '{"a":"\n"}'],
    ['a carriage return in a text', '{"a":"\r"}'],
    ['an escape that JSON does not have', '{"a":"\\x41"}'],
    ['an escape that JSON does not have, in a name', '{"\\x41":1}'],
    ['a comma at the end', '{"a":1,}'],
    ['a comment', '{/**/}'],
    ['a name without quotes', '{a:1}'],
    ['single quotes', "{'a':1}"],
    ['hexadecimal digits', '{"a":0x10}'],
    ['a zero first', '{"a":01}'],
    ['a plus', '{"a":+1}'],
    ['NaN', '{"a":NaN}'],
    ['a text without an end', '{"a":"'],
    ['a text that ends in a backslash', '{"a":"\\"}'],
    ['more brackets closed than opened', ']'.repeat(10_000_000)],
    ['brackets of two kinds', '{"a":[}]'],
    ['10 MB of backslashes', `{"${'\\'.repeat(10_000_000)}`],
    ['10 MB of quotes behind backslashes', `{"a":"${'\\"'.repeat(5_000_000)}`],
  ],
  '4.00 not_utf8': [
    ['a byte that begins nothing', bytes('{"a":"', [0xff], '"}')],
    ['an overlong slash', bytes('{"a":"', [0xc0, 0xaf], '"}')],
    ['an overlong quote', bytes('{"a":', [0xc0, 0xa2], '}')],
    ['half a pair as three bytes', bytes('{"a":"', [0xed, 0xa0, 0x80], '"}')],
    ['a pair as six bytes', bytes('{"a":"', [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80], '"}')],
    ['beyond U+10FFFF', bytes('{"a":"', [0xf4, 0x90, 0x80, 0x80], '"}')],
    ['a character that is cut', bytes('{"a":"', [0xe2, 0x82])],
    ['UTF-16', new Uint8Array([0xff, 0xfe, 0x7b, 0, 0x7d, 0])],
  ],
  '4.13 members': [
    ['more values than one message may have', `{"a":[${'1,'.repeat(limits.jsonMembers)}1]}`],
    ['more empty objects than one message may have', `{"a":[${'{},'.repeat(limits.jsonMembers)}{}]}`],
    ['10 MB of numbers', `{"a":[${'0,'.repeat(5_000_000)}0]}`],
    ['more names than one message may have', `{${Array.from({ length: limits.jsonMembers + 2 }, (_, at) => `"\\u0061${at}":0`).join()}}`],
  ],
}

for (const [refusal, rows] of Object.entries(REFUSED)) {
  test.each(rows)(`${refusal}: %s`, async (_, text) => {
    expect(await outcome(() => strictObject(text))).toBe(refusal)
  })
}

verifies('envelope:ambiguous-json', 'what two readers may read differently', async () => {
  const ambiguous = ['duplicate', 'surrogate', 'name', 'depth', 'number', 'prototype', 'not_utf8'].flatMap((reason) =>
    (REFUSED[`4.00 ${reason}`] ?? []).map(([, text]) => [`4.00 ${reason}`, text] as const),
  )
  expect(ambiguous.length).toBeGreaterThan(40)
  for (const [refusal, text] of ambiguous) expect(await outcome(() => strictObject(text))).toBe(refusal)
})

test.each([
  ['members of the same name in other objects', '{"a":{"a":[{"a":1},{"a":1}]},"b":{"a":1}}'],
  ['a text twice in an array', '{"a":["b","b",{"b":"b"}]}'],
  ['names that differ in case', '{"a":1,"A":2}'],
  ['names that look the same', '{"\\u00e9":1,"e\\u0301":2}'],
  ['a pair in a text', '{"a":"😀\\ud83d\\ude00"}'],
  ['a name at the end of the plane', '{"\uffff\ufb33\\uE000":1}'],
  ['32 levels', nested(32)],
  ['the largest whole numbers', '{"a":[9007199254740991,-9007199254740991,9007199254740991.0]}'],
  ['fractions', '{"a":[0.1,-0.0,1e-400,4.35,1.5E+3,1E2,-0]}'],
  ['prototypes in a text', '{"a":"__proto__"}'],
  ['names that objects have anyway', '{"toString":1,"hasOwnProperty":2,"valueOf":3}'],
  ['white space', ' \t\r\n{\r"a" :\t1 }\n'],
  ['a U+2028', '{"a":"\u2028"}'],
  ['brackets, quotes and commas in a text', '{"a":"}]{[,:\\"\\\\","b":["\\\\\\"",{}]}'],
  ['a text of 10 MB', `{"a":"${'\\\\'.repeat(2_500_000)}${'"x"'.replaceAll('"', '\\"').repeat(1_000_000)}"}`],
  ['a name of 10 MB', `{"${'\\n'.repeat(5_000_000)}":1}`],
])('is read as JSON.parse reads it: %s', (_, text) => {
  expect(strictObject(text)).toEqual(JSON.parse(text))
  expect(strictObject(Buffer.from(text))).toEqual(JSON.parse(text))
})

// A clock would tell little on a busy machine. What is counted is how often the text is looked at.
test('looks at a text once, whatever its escapes', () => {
  const looks = (text: string): number => {
    let count = 0
    const original = String.prototype.charCodeAt
    String.prototype.charCodeAt = function (this: string, at: number) {
      count++
      return original.call(this, at)
    }
    try {
      strictObject(text)
    } finally {
      String.prototype.charCodeAt = original
    }
    return count
  }
  const texts: Readonly<Record<string, (size: number) => string>> = {
    backslashes: (size) => `{"a":"${'\\\\'.repeat(size)}"}`,
    quotes: (size) => `{"a":"${'\\"'.repeat(size)}"}`,
    names: (size) => `{${Array.from({ length: size }, (_, at) => `"\\u0061${at}":0`).join()}}`,
    numbers: (size) => `{"a":[${'12,'.repeat(size)}0]}`,
  }
  for (const [, textOf] of Object.entries(texts)) {
    const text = textOf(10_000)
    expect(looks(text)).toBeLessThan(text.length * 2)
  }
})
