import { afterAll, beforeAll, describe, expect } from 'vitest'
import { verifies } from '../../support/verifies.ts'
import { A2A } from './a2a.ts'
import { decisionOf } from './forms.ts'
import { OPENAI } from './openai.ts'
import { decided, expectedOf, nameOf, type Operation } from './operation.ts'
import { OF_MONEY, OTHERS } from './others.ts'
import { AGENT, callers, FEW, rowFor, rowOf, type Caller, type Row } from './rule.ts'
import { knock, SOCKETS, waysOf } from './sockets.ts'
import { OWN_AGENT, Things, World } from './world.ts'

const ends: (() => Promise<void> | void)[] = []
let world: World
let things: Things

beforeAll(async () => {
  world = await World.open(ends)
  things = new Things(world)
})

afterAll(async () => {
  for (const end of ends.toReversed()) await end()
})

const isRpc = ({ form }: Operation): boolean => form === 'a2a'
const PROTOCOLS: Readonly<Record<string, readonly Operation[]>> = {
  ...OPENAI,
  'JSON-RPC of A2A': A2A.filter(isRpc),
  'other bindings of A2A': A2A.filter((operation) => !isRpc(operation)),
  ...OTHERS,
}
/** At the root, and below the name of the agent, where the same is asked in the same way. */
const MOUNTS = { '': callers, [`/agents/${AGENT}`]: FEW }

verifies('identity:matrix:listed', 'a route that is new has no verdict yet: every one that the server lists has one', async () => {
  const { routes } = (await (await fetch(world.url)).json()) as { routes: string[] }
  const listed = new Set(routes.map((line) => line.replace(/ \(.*\)$/, '')))
  const known = [...[...Object.values(PROTOCOLS).flat(), ...SOCKETS].map(({ route }) => route), ...OF_MONEY]
  expect(known.filter((route) => !listed.has(route))).toEqual(['GET /'])
  expect([...listed].filter((route) => !known.includes(route))).toEqual([])
})

describe('every kind of caller is told the same by', () => {
  for (const [protocol, operations] of Object.entries(PROTOCOLS)) {
    verifies('identity:matrix:same', protocol, async () => {
      const [found, expected] = [new Map<string, Row>(), new Map<string, Row>()]
      for (const [mount, whom] of Object.entries(MOUNTS)) {
        for (const operation of operations.filter(({ atRoot }) => !atRoot || mount === '')) {
          const name = `${nameOf(operation)} at ${mount || '/'}`
          found.set(name, await decided(operation, { world, things, mount }, whom))
          expected.set(name, expectedOf(operation, whom))
        }
      }
      expect(Object.fromEntries(found)).toEqual(Object.fromEntries(expected))
    })
  }

  verifies('identity:matrix:same', 'every socket, however the token comes', async () => {
    const [found, expected] = [new Map<string, Row>(), new Map<string, Row>()]
    for (const [mount, whom] of Object.entries(MOUNTS)) {
      for (const socket of SOCKETS) {
        for (const way of waysOf(socket)) {
          const name = `${socket.route} at ${mount || '/'}, token by ${way}`
          found.set(name, await rowOf((caller) => knock(world, socket, { caller, way, mount }), whom))
          expected.set(name, rowFor(socket, whom))
        }
      }
    }
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(expected))
  })

  verifies('identity:matrix:same', 'routes and sockets that an agent brings', async () => {
    const mount = `/agents/${OWN_AGENT}`
    const asked = { asks: 'call', agent: OWN_AGENT, form: 'uamp' } as const
    const route: Operation = { ...asked, route: 'GET /own', request: () => ({ method: 'GET', path: '/own' }) }
    expect(await decided(route, { world, things, mount })).toEqual(expectedOf(route))
    const socket = { ...asked, route: 'WS /own/socket', path: '/own/socket' }
    expect(await rowOf((caller) => knock(world, socket, { caller, way: 'header', mount }))).toEqual(rowFor(asked))
  })
})

verifies('identity:matrix:same', 'an upload whose URL lacks the key is not found, whoever sends it', async () => {
  const [path = ''] = (await things.fresh('uploadUrl')).split('&key=')
  const told = await rowOf(async (caller) => decisionOf('omnia', await world.ask(caller, { method: 'PUT', path, body: 'x' })))
  expect(new Set(Object.values(told))).toEqual(new Set(['not found']))
})

verifies('identity:matrix:same', 'a HEAD is decided about as the GET that it stands for', async () => {
  const path = `/v1/responses/${await things.shared('response')}`
  const statuses = await rowOf(async (caller) => String((await world.send(caller, { method: 'HEAD', path })).status))
  const expected = await rowOf(async (caller) => String((await world.send(caller, { method: 'GET', path })).status))
  expect(statuses).toEqual(expected)
})

verifies('identity:matrix:same', 'a challenge asks for a token, or says that the one that came does not count', async () => {
  const bad: readonly Caller[] = ['expired', 'forged', 'revoked']
  for (const operation of Object.values(PROTOCOLS).flat()) {
    if (operation.asks === 'public' || operation.asks === 'url' || operation.asks === 'client') continue
    const { path, ...request } = operation.request('none')
    expect([nameOf(operation), (await world.ask('none', { path, ...request })).challenge]).toEqual([
      nameOf(operation),
      'Bearer realm="uamp"',
    ])
    for (const { challenge } of await Promise.all(bad.map((caller) => world.ask(caller, { path, ...request }))))
      expect(`${nameOf(operation)}: ${challenge}`).toContain(': Bearer error="invalid_token"')
  }
})
