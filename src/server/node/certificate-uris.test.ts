import { expect, test } from 'vitest'
import { urisOf } from './certificate-uris.ts'

test.each([
  [undefined, []],
  ['DNS:a.example, URI:did:web:a.example, IP Address:127.0.0.1', ['did:web:a.example']],
  ['URI:did:web:a.example, URI:https://b.example/x?y=1', ['did:web:a.example', 'https://b.example/x?y=1']],
  // A name that looks like two is one.
  ['DNS:"a.example, URI:did:web:victim.example"', []],
  ['URI:"https://a.example/, URI:did:web:victim.example", DNS:b', ['https://a.example/, URI:did:web:victim.example']],
  ['URI:"quoted \\" and more"', ['quoted " and more']],
  ['DNS:a\u0000b, URI:did:web:a', ['did:web:a']],
  ['URI:"unfinished', []],
])('the URIs of %j', (subjectAltName, uris) => {
  expect(urisOf({ subjectAltName })).toEqual(uris)
})
