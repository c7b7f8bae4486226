import { expect, test } from 'vitest'
import { disposition } from './content-disposition.ts'

test.each([
  ['photo.jpg', `inline; filename="photo.jpg"; filename*=UTF-8''photo.jpg`],
  ['ü "x".html', `inline; filename="_ _x_.html"; filename*=UTF-8''%C3%BC%20%22x%22.html`],
  ["it's (1)*.txt", `inline; filename="it's (1)*.txt"; filename*=UTF-8''it%27s%20%281%29%2a.txt`],
  ['\r\nx: y', `inline; filename="__x: y"; filename*=UTF-8''%0D%0Ax%3A%20y`],
  ['\ud800', `inline; filename="_"; filename*=UTF-8''%EF%BF%BD`],
])('of %j', (filename, header) => {
  expect(disposition('inline', filename)).toBe(header)
})
