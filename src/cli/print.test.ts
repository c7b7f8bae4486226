import { expect, test } from 'vitest'
import { harmless } from './print.ts'

test.each([
  ['CSI', 'a\u001B[2J\u001B[1;31mb\u001B[0m', 'ab'],
  ['CSI of one character', 'a\u009B2Jb', 'ab'],
  ['OSC that ends with BEL', 'a\u001B]0;title\u0007b', 'ab'],
  ['OSC that ends with ST', 'a\u001B]52;c;ZXZpbA==\u001B\\b', 'ab'],
  ['OSC of one character', 'a\u009D0;title\u009Cb', 'ab'],
  ['a link', 'a\u001B]8;;http://evil.example\u0007here\u001B]8;;\u0007b', 'ahereb'],
  ['DCS, APC, PM and SOS', 'a\u001BP1$tx\u001B\\b\u001B_x\u001B\\c\u001B^x\u001B\\d\u001BXx\u001B\\e', 'abcde'],
  ['other escapes', 'a\u001Bcb\u001B(0c\u001B7d', 'abcd'],
  ['an escape that is cut off', 'a\u001B[12', 'a[12'],
  ['an OSC that never ends loses no text', 'a\u001B]0;rest of the answer', 'a]0;rest of the answer'],
  ['C0, DEL and C1', 'a\u0000\u0007\b\r\u007F\u0085b', 'ab'],
  ['bidirectional overrides and isolates', 'a\u202Eb\u202C\u2066c\u2069', 'abc'],
  ['line breaks and tabs stay', 'a\n\tb', 'a\n\tb'],
  ['other languages stay', 'שלום 你好 👩‍💻', 'שלום 你好 👩‍💻'],
])('%s', (_, text, shown) => expect(harmless(text)).toBe(shown))
