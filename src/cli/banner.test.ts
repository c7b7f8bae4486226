import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { banner, type Shown } from './banner.ts'

const served = (given: Partial<Shown>): string =>
  banner(
    {
      version: '1',
      url: 'http://localhost:8787',
      host: '127.0.0.1',
      agents: [{ name: 'a' }],
      root: 'a',
      data: 'memory',
      tokens: [],
      anonymous: true,
      believes: false,
      notes: [],
      ...given,
    },
    (_, text) => text,
  )

const protocols = (text: string): string[] =>
  /^ {2}(Events|OpenAI|A2A|AG-UI|ACP|Omnia) /gm[Symbol.match](text)?.map((row) => row.trim()) ?? []

test('an agent of all protocols has them all', () => {
  expect(protocols(served({}))).toEqual(['Events', 'OpenAI', 'A2A', 'AG-UI', 'ACP', 'Omnia'])
})

test('a file that was left out is shown with the command that serves it', () => {
  expect(served({ unused: 'agent.js: `npx uamp serve agent.js` serves it' })).toContain('Not used    agent.js: `npx uamp serve agent.js`')
  expect(served({})).not.toContain('Not used')
})

test('protocols that no agent is offered through are not shown', () => {
  const text = served({ agents: [{ name: 'a', protocols: ['events', 'a2a'] }] })
  expect(protocols(text)).toEqual(['Events', 'A2A'])
  expect(text).toContain('curl -N localhost:8787/events')
  expect(protocols(served({ agents: [{ name: 'a', protocols: ['realtime'] }] }))).toEqual(['OpenAI'])
})

test('without UAMP events there is nothing to try that needs them', () => {
  const text = served({ agents: [{ name: 'a', protocols: ['completions'] }] })
  expect(text).not.toMatch(/Try it|curl|uamp chat/)
  expect(protocols(served({ agents: [{ name: 'a', protocols: [] }] }))).toEqual([])
})

test('a protocol that the agent at / lacks is shown at one that has it', () => {
  const text = served({
    agents: [
      { name: 'a', protocols: ['completions'] },
      { name: 'b', protocols: ['events', 'ag-ui', 'omnia'] },
    ],
  })
  expect(protocols(text)).toEqual(['Events', 'OpenAI', 'AG-UI', 'Omnia'])
  expect(text).toContain('ws://localhost:8787/agents/b/uamp, or POST /agents/b/events')
  expect(text).toContain('http://localhost:8787/agents/b/ag-ui')
  expect(text).toContain('/omnia?agent=b')
  expect(text).toContain('curl -N localhost:8787/agents/b/events')
  expect(text).toContain('npx uamp chat --agent b')
})

test('callers by tokens that somebody issues are shown, and no secret is asked for that nobody has', () => {
  const text = served({ anonymous: false, believes: true })
  expect(text).toMatch(/^ {2}Callers +those whom `access` of the config believes$/m)
  expect(text).toContain("UAMP_TOKEN='<access token>' npx uamp chat")
  expect(text).not.toContain('undefined')
  expect(served({ tokens: ['alice'], anonymous: false, believes: true })).toMatch(/^ {2}Callers +alice, each by token; those whom/m)
})

test('a data folder below this one is named from here, another one by its whole path', () => {
  expect(served({ data: resolve('kept/here') })).toMatch(/^ {2}Sessions +in kept\/here$/m)
  expect(served({ data: '/var/lib/uamp' })).toMatch(/^ {2}Sessions +in \/var\/lib\/uamp$/m)
})
