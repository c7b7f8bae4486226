import { expect, test } from 'vitest'
import { readCard } from './card.ts'

const leadsTo = (from: string, url: string): string | undefined => {
  try {
    return readCard({ url }, { name: 'far', from }).interfaces[0]?.url
  } catch {
    return undefined
  }
}

test.each([
  ['https://agents.example/card.json', 'https://api.example/a2a', 'https://api.example/a2a'],
  ['https://agents.example/a/card.json', '/a2a', 'https://agents.example/a2a'],
  ['http://127.0.0.1:1/card.json', 'http://localhost:2/a2a', 'http://localhost:2/a2a'],
  // Not over an open line.
  ['https://agents.example/card.json', 'http://agents.example/a2a', undefined],
  ['https://agents.example/card.json', 'file:///etc/passwd', undefined],
])('a card at %s leads to %s: %s', (from, url, to) => {
  expect(leadsTo(from, url)).toBe(to)
})

test('what is of the wrong kind is not there', () => {
  const card = readCard(
    {
      url: 'https://a.example/',
      name: 7,
      description: null,
      supportedInterfaces: 'all',
      additionalInterfaces: [null, { url: 3 }],
      capabilities: { streaming: 'yes', extensions: [{ uri: 'https://x.example/e' }, {}] },
      defaultInputModes: [1, 'image/png'],
      skills: [{ id: 's' }, 'no', { description: 'nameless' }],
      securitySchemes: [],
    },
    { name: 'far', from: 'https://a.example/card.json' },
  )
  expect(card).toMatchObject({
    description: undefined,
    streaming: false,
    inputModes: ['image/png'],
    outputModes: ['text/plain'],
    extensions: ['https://x.example/e'],
    abilities: [{ id: 's', name: 's', description: '', tags: [] }],
    keyHeader: undefined,
  })
  expect(card.interfaces.map(({ binding, version }) => [binding, version])).toEqual([
    ['JSONRPC', '0.3'],
    ['JSONRPC', '0.1'],
  ])
})
