import { afterAll, beforeAll, describe, expect } from 'vitest'
import { AcpConnection, NOTIFICATIONS as UNANSWERED, type ConnectionOptions } from '../../../src/transports/acp/connection.ts'
import { OLDER_METHODS } from '../../../src/transports/acp/older-methods.ts'
import { rpcGenerations } from '../../../src/transports/a2a/json-rpc.ts'
import { ClientMessage } from '../../../src/transports/omnia/schema.ts'
import { ClientEvent } from '../../../src/protocol/events.ts'
import { verifies } from '../../support/verifies.ts'
import { RPC_METHODS } from './a2a.ts'
import { AcpHttp, expectedOf, FIRST, messageOf, methods, NOTIFICATIONS, overHttp, overSocket, type Decisions } from './acp.ts'
import { EVENTS, overHttp as eventsOverHttp, overSocket as eventsOverSocket, resume, types, type Send } from './events.ts'
import { decisionIn } from './forms.ts'
import { Line, type Heard } from './line.ts'
import { callers, decisionFor, type Caller } from './rule.ts'
import { OMNIA, REALTIME } from './spoken.ts'
import { Things, World } from './world.ts'

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

const sorted = (names: Iterable<string>): string[] => [...new Set(names)].toSorted()
const typesIn = ({ def }: { readonly def: { readonly options: readonly { shape: { type: { def: { values: readonly string[] } } } }[] } }) =>
  def.options.map(({ shape }) => shape.type.def.values[0] ?? '')

async function open(path: string, caller: Caller = 'right'): Promise<Line> {
  const line = await Line.open(world.url, { path, headers: world.headersOf(caller) })
  if (!(line instanceof Line)) throw new Error(`${path}: ${line.status} ${line.text}`)
  ends.push(() => line.close())
  return line
}

verifies('identity:matrix:methods', 'every method and every type of event that there is has a verdict', async () => {
  expect(sorted(RPC_METHODS)).toEqual(sorted(rpcGenerations().flatMap(({ methods: own }) => Object.keys(own))))
  const { methods: ofAcp } = new AcpConnection({} as ConnectionOptions)
  expect(sorted([FIRST, ...methods])).toEqual(sorted([...ofAcp.keys(), ...OLDER_METHODS.keys()]))
  expect(sorted(Object.keys(NOTIFICATIONS))).toEqual(sorted(UNANSWERED))
  expect(sorted(types)).toEqual(sorted(typesIn(ClientEvent)))
  expect(sorted(Object.keys(OMNIA))).toEqual(sorted(typesIn(ClientMessage)))
  // The server names the events of Realtime itself.
  const line = await open('/v1/realtime')
  line.send({ type: 'none', event_id: 'none' })
  const { error } = await line.next((message) => message['error']?.event_id === 'none')
  expect(sorted(Object.keys(REALTIME))).toEqual(
    sorted(
      [
        ...String(error.message)
          .split('There are:')[1]!
          .matchAll(/'([^']+)'/g),
      ].map(([, name = '']) => name),
    ),
  )
})

describe('the types of UAMP events', () => {
  const CARRIERS: Readonly<Record<string, Send>> = {
    HTTP: eventsOverHttp,
    '/uamp': eventsOverSocket('/uamp'),
    '/ws': eventsOverSocket('/ws'),
  }
  for (const [carrier, send] of Object.entries(CARRIERS)) {
    verifies('identity:matrix:methods', `are decided about by their kind, over ${carrier}`, async () => {
      const found: Record<string, Record<string, string>> = {}
      const expected: typeof found = {}
      for (const caller of callers) {
        const verdicts = types.map((type) => [type, decisionFor({ asks: EVENTS[type].asks, owned: type !== 'session.create' }, caller)])
        found[caller] = await send(world, things, caller)
        expected[caller] = {
          ...(Object.fromEntries(verdicts) as Record<string, string>),
          resume: decisionFor({ asks: 'read', owned: true }, caller),
          // Whoever is on a socket hears that it is alive, also before they say who they are.
          ...(carrier !== 'HTTP' && { ping: caller === 'none' ? 'admitted' : decisionFor({ asks: 'read' }, caller) }),
        }
      }
      expect(found).toEqual(expected)
    })
  }

  verifies('identity:matrix:methods', 'are no less refused where they are for all sessions of a connection', async () => {
    const line = await open('/uamp', 'read only')
    for (const create of [resume(await things.fresh('session')), resume(await things.fresh('session'))]) {
      line.send(create)
      await line.next(({ extensions }: Heard) => extensions?.uamp?.request === create.event_id)
    }
    line.send({ type: 'session.update', event_id: 'pays', payment_token: 'a-token' })
    const answer = await line.next(({ type, error }) => type === 'session.updated' || error?.details?.event_id === 'pays')
    expect(decisionIn('uamp', answer)).toBe('forbidden')
  })
})

describe('the methods of ACP', () => {
  const CARRIERS = {
    HTTP: async () => {
      const connection = await AcpHttp.open(world)
      return (caller: Caller) => overHttp(connection, caller)
    },
    '/acp': async () => {
      const connection = await AcpHttp.open(world)
      return (caller: Caller) => overSocket({ world, path: '/acp', connection }, caller)
    },
    '/acp/stream': async () => {
      const connection = await AcpHttp.open(world)
      return (caller: Caller) => overSocket({ world, path: '/acp/stream', connection }, caller)
    },
  }
  for (const [carrier, begin] of Object.entries(CARRIERS)) {
    verifies('identity:matrix:methods', `are decided about by their kind, over ${carrier}`, async () => {
      const send = await begin()
      const found = new Map<Caller, Decisions>()
      for (const caller of callers) found.set(caller, await send(caller))
      for (const method of methods) {
        const row = Object.fromEntries(callers.map((caller) => [caller, found.get(caller)?.[method]]))
        expect({ [method]: row }).toEqual({ [method]: expectedOf(method, carrier === 'HTTP' ? 'HTTP' : 'socket') })
      }
    })
  }

  verifies('identity:matrix:methods', 'delete nothing of somebody else’s', async () => {
    const connection = await AcpHttp.open(world)
    const session = await connection.session()
    const line = await open('/acp', 'of another')
    line.send({ jsonrpc: '2.0', id: 'i', method: FIRST, params: { protocolVersion: 1 } })
    const remove = messageOf('session/delete', session)
    line.send(remove)
    expect(await line.next(({ id }) => id === remove.id)).toMatchObject({ result: {} })
    expect(await connection.ask('right', messageOf('session/load', session))).toBe('admitted')
  })

  for (const name of Object.keys(NOTIFICATIONS)) {
    verifies('identity:matrix:methods', `that get no answer have no effect either, if they are refused: ${name}`, async () => {
      const connection = await AcpHttp.open(world)
      const session = await connection.session()
      await connection.follow(session)
      const prompt = {
        ...messageOf('session/prompt', session),
        params: { sessionId: session, prompt: [{ type: 'text', text: '/count 100000 5' }] },
      }
      await connection.tell('right', prompt)
      const isPiece = ({ params }: Heard): boolean => params?.update?.sessionUpdate === 'agent_message_chunk'
      await connection.next(isPiece)
      const params = name === 'session/cancel' ? { sessionId: session } : { requestId: prompt.id }
      const notice = { jsonrpc: '2.0', method: name, params }
      expect(await connection.tell('read only', notice)).toBeUndefined()
      // What comes after it was heard after it.
      expect(await connection.ask('right', messageOf('session/list', ''))).toBe('admitted')
      await connection.next(isPiece, connection.count + 3)
      expect(await connection.tell('read and cancel', notice)).toBeUndefined()
      expect(await connection.answer(prompt.id)).toMatchObject({ result: { stopReason: 'cancelled' } })
    })
  }
})

describe('where a socket is one session of whoever opened it, each type is for them', () => {
  const SPOKEN = { Realtime: ['/v1/realtime', 'openai', REALTIME], Omnia: ['/omnia', 'omnia', OMNIA] } as const
  for (const [name, [path, form, examples]] of Object.entries(SPOKEN)) {
    verifies('identity:matrix:methods', name, async () => {
      for (const caller of callers) {
        const line = await Line.open(world.url, { path, headers: world.headersOf(caller) })
        const expected = decisionFor({ asks: 'call' }, caller)
        if (!(line instanceof Line)) {
          expect([caller, expected]).not.toEqual([caller, 'admitted'])
          continue
        }
        expect([caller, expected]).toEqual([caller, 'admitted'])
        for (const [type, fields] of Object.entries(examples)) line.send({ type, ...fields })
        // They are heard one after the other, and this one is the last that is answered.
        const isLast = ({ type }: Heard): boolean => type === (name === 'Omnia' ? 'upload_ready' : 'session.updated')
        await line.next(isLast)
        const refused = line.heard
          .map((message) => decisionIn(form, message))
          .filter((decision) => /^(forbidden|unauthorized)/.test(decision))
        expect([caller, refused]).toEqual([caller, []])
        line.close()
      }
    })
  }
})
