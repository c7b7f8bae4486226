import { expect, test } from 'vitest'
import { urlBelow } from './url-below.ts'

test.each([
  ['http://a/v1', '/models', 'http://a/v1/models'],
  ['http://a/v1//', '/models', 'http://a/v1/models'],
  ['http://a/v1?api-version=1', '/models', 'http://a/v1/models?api-version=1'],
  ['http://a/v1/?x=a?b', '/models?alt=sse', 'http://a/v1/models?x=a?b&alt=sse'],
  ['http://a', '/m?alt=sse', 'http://a/m?alt=sse'],
  ['http://a?', '/m', 'http://a/m'],
])('%s and %s', (base, path, url) => expect(urlBelow(base, path)).toBe(url))
