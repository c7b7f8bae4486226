import { afterAll, beforeAll, describe, expect } from 'vitest'
import { bearerToken } from '../../../src/auth/bearer.ts'
import type { Access } from '../../../src/core/ports/access.ts'
import { verifies } from '../../support/verifies.ts'
import { A2A } from './a2a.ts'
import { FIRST, messageOf } from './acp.ts'
import { resume } from './events.ts'
import { decisionIn, decisionOf, type Form } from './forms.ts'
import { Line, type Heard } from './line.ts'
import { OPENAI } from './openai.ts'
import { decided, decisionAbout, nameOf, type Operation } from './operation.ts'
import { OTHERS } from './others.ts'
import { AGENT, GUEST, OTHER_AGENT, rowAtRoot, rowFor, rowOf, type Asked, type Caller, type Row } from './rule.ts'
import { knock, SOCKETS, waysOf } from './sockets.ts'
import { INITIALIZE, Things, World, type Request } from './world.ts'

const ends: (() => Promise<void> | void)[] = []
let world: World
/** Of alice's with the other agent. */
let things: Things

beforeAll(async () => {
  world = await World.open(ends)
  things = new Things(world, OTHER_AGENT)
})

afterAll(async () => {
  for (const end of ends.toReversed()) await end()
})

const post = (path: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Request => ({
  method: 'POST',
  path,
  body,
  headers,
})
const HELLO = [{ role: 'user', content: 'Hello' }]
const message = () => ({ messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'Hello' }] })
const V1 = { 'a2a-version': '1.0' }
const rpc = { jsonrpc: '2.0', id: 1, method: 'SendMessage' }
const model = { model: OTHER_AGENT, input: 'Hello' }

/** Requests that name the other agent. */
const NAMING: readonly Operation[] = [
  ...['/chat/completions', '/v1/chat/completions'].map(
    (path) =>
      ({
        route: `POST ${path}`,
        asks: 'call',
        form: 'openai',
        request: () => post(path, { model: OTHER_AGENT, messages: HELLO }),
      }) as const,
  ),
  ...['', '/input_tokens', '/compact'].map(
    (below) =>
      ({ route: `POST /v1/responses${below}`, asks: 'call', form: 'openai', request: () => post(`/v1/responses${below}`, model) }) as const,
  ),
  { route: 'GET /v1/models/:id', asks: 'read', form: 'openai', request: () => ({ method: 'GET', path: `/v1/models/${OTHER_AGENT}` }) },
  { route: 'POST /events', asks: 'call', form: 'uamp', request: () => post('/events', [{ type: 'session.create', agent: OTHER_AGENT }]) },
  {
    route: 'POST /a2a',
    asks: 'call',
    form: 'a2a',
    request: () => post('/a2a', { ...rpc, params: { tenant: OTHER_AGENT, message: message() } }, V1),
  },
  {
    route: 'POST /a2a/rest/*',
    asks: 'call',
    form: 'a2a rest',
    request: () => post(`/a2a/rest/${OTHER_AGENT}/message:send`, { message: message() }, V1),
  },
]

interface Saying extends Asked {
  readonly path: string
  readonly form: Form
  readonly says?: readonly { readonly [field: string]: unknown }[]
  readonly isAnswer?: (message: Heard) => boolean
}

const CREATE = { type: 'session.create', uamp_version: '1.0', event_id: 'e1', agent: OTHER_AGENT, session: { modalities: ['text'] } }
const isEvent = ({ type }: Heard): boolean => type !== 'rate_limit'
const ACP_NEW = {
  ...messageOf('session/new', ''),
  id: 'asked',
  params: { cwd: '/', mcpServers: [], _meta: { uamp: { agent: OTHER_AGENT } } },
}
const isAsked = ({ id, method }: Heard): boolean => id === 'asked' && method === undefined

/** The same on sockets. */
const SAYING: readonly Saying[] = [
  ...['/uamp', '/ws'].map((path) => ({ path, asks: 'call', form: 'uamp', says: [CREATE], isAnswer: isEvent }) as const),
  ...['/responses', '/v1/responses'].map(
    (path) => ({ path, asks: 'call', form: 'openai', says: [{ type: 'response.create', ...model }] }) as const,
  ),
  ...['/realtime', '/v1/realtime'].map((path) => ({ path: `${path}?model=${OTHER_AGENT}`, asks: 'call', form: 'openai' }) as const),
  ...[`/omnia?agent=${OTHER_AGENT}`, `/?agent=${OTHER_AGENT}`, `/api/agents/default/${OTHER_AGENT}/ws`].map(
    (path) => ({ path, asks: 'call', form: 'omnia' }) as const,
  ),
  ...['/acp', '/acp/stream'].map((path) => ({ path, asks: 'call', form: 'acp', says: [INITIALIZE, ACP_NEW], isAnswer: isAsked }) as const),
]

async function said({ path, form, says = [], isAnswer }: Saying, { at, caller }: { at: World; caller: Caller }): Promise<string> {
  const line = await Line.open(at.url, { path, headers: at.headersOf(caller) })
  if (!(line instanceof Line)) return decisionOf(form, line)
  try {
    for (const each of says) line.send(each)
    return decisionIn(form, await line.next(isAnswer))
  } finally {
    line.close()
  }
}

/** What A2A and AG-UI call by an id is found only at the address of its agent, and so is a connection of ACP. */
const ELSEWHERE = new Set(['GET /ag-ui/threads/:threadId', 'GET /acp', 'DELETE /acp'])

/** True for what is found by its id alone. */
const isReached = ({ thing, asks, route }: Operation): boolean => thing !== undefined && asks !== 'url' && !ELSEWHERE.has(route)

type Rows = Record<string, Row>

/** For each operation, what was decided and what should be. */
async function compare(operations: readonly Operation[], { at = world, of = things, rule = rowAtRoot } = {}): Promise<void> {
  const [found, expected]: [Rows, Rows] = [{}, {}]
  for (const operation of operations) {
    const name = nameOf(operation)
    found[name] = await decided(operation, { world: at, things: of, mount: '' })
    expected[name] = rule({ owned: operation.thing !== undefined, ...operation })
  }
  expect(found).toEqual(expected)
}

async function compareSockets(sayings: readonly Saying[], { at = world, rule = rowAtRoot } = {}): Promise<void> {
  const [found, expected]: [Rows, Rows] = [{}, {}]
  for (const saying of sayings) {
    found[saying.path] = await rowOf((caller) => said(saying, { at, caller }))
    expected[saying.path] = rule(saying)
  }
  expect(found).toEqual(expected)
}

describe('a token for one agent does not reach another of the same server', () => {
  verifies('identity:matrix:same', 'that a request names', () => compare(NAMING))

  verifies('identity:matrix:same', 'that is named on a socket', () => {
    expect(new Set(SAYING.map(({ path }) => path.replace(/\?.*/, '')).map((path) => path.replace(OTHER_AGENT, 'demo')))).toEqual(
      new Set(SOCKETS.map(({ path }) => path)),
    )
    return compareSockets(SAYING)
  })

  verifies('identity:matrix:same', 'by the id of something that is its', async () => {
    const operations = Object.values({ ...OPENAI, ...OTHERS }).flat()
    await compare(operations.filter(isReached))
    for (const operation of [...A2A, ...operations.filter(({ route }) => ELSEWHERE.has(route))]) {
      const { once: _, ...again } = operation
      if (again.thing === undefined) continue
      const { right, 'for this agent': forThis } = await decided(again, { world, things, mount: '' }, ['right', 'for this agent'])
      expect([nameOf(operation), right, forThis]).toEqual([nameOf(operation), 'not found', 'not found'])
    }
  })

  verifies('identity:matrix:same', 'by the id of its session, on a socket', async () => {
    const session = await things.shared('session')
    const create = resume(session)
    const load = (method: string) => ({ ...messageOf(method, session), id: 'asked' })
    await compareSockets([
      ...['/uamp', '/ws'].map((path) => ({ path, asks: 'read', owned: true, form: 'uamp', says: [create], isAnswer: isEvent }) as const),
      ...(['session/load', 'session/resume'] as const).map(
        (method, index) =>
          ({
            path: ['/acp', '/acp/stream'][index] ?? '',
            asks: 'call',
            owned: true,
            form: 'acp',
            says: [{ jsonrpc: '2.0', id: 'i', method: FIRST, params: { protocolVersion: 1 } }, load(method)],
            isAnswer: isAsked,
          }) as const,
      ),
    ])
    // Omnia gives whoever names a session that is not theirs a new one.
    const omnia = { path: `/omnia?resume=${session}`, asks: 'call', form: 'omnia' } as const
    expect(await rowOf((caller) => said(omnia, { at: world, caller }))).toEqual({ ...rowAtRoot(omnia) })
  })
})

verifies('identity:matrix:same', 'where no agent is at the root, the one that is meant is all that is asked for', async () => {
  const at = await World.open(ends, { rootless: true })
  const of = new Things(at, OTHER_AGENT)
  const meant = <T extends Asked>(asked: T) => ({ ...asked, agent: OTHER_AGENT })
  const byId = Object.values({ ...OPENAI, ...OTHERS }).flatMap((operations) => operations.filter(isReached))
  await compare([...NAMING, ...byId].map(meant), { at, of, rule: rowFor })
  // A connection of ACP begins with an agent, and so needs one.
  await compareSockets(SAYING.filter(({ form }) => form !== 'acp').map(meant), { at, rule: rowFor })
})

verifies(
  'identity:matrix:same',
  'a token that comes with a session is asked about for the agent of that session, and no other',
  async () => {
    for (const socket of SOCKETS.filter(({ byMessage }) => byMessage)) {
      const row = await rowOf((caller) => knock(world, { ...socket, hello: CREATE }, { caller, way: 'message', mount: '' }))
      expect({ [socket.route]: row }).toEqual({ [socket.route]: rowFor({ asks: 'call', agent: OTHER_AGENT }) })
    }
  },
)

/** Alice does what she likes with the agent at the root, and only reads what the other one has. */
const access: Access = {
  schemes: ['Bearer'],
  authenticate: async (credentials) => ({ tenant: 't', id: 'alice', scopes: [bearerToken(credentials) ?? ''] }),
  authorize: ({ scopes }, action, agent) => scopes.includes('right') || agent === AGENT || action === 'read',
}

verifies('identity:matrix:same', 'what may be done with something is asked of its own agent, and not of the one at the root', async () => {
  const own = await World.openWith(ends, access)
  const place = { world: own, things: new Things(own, OTHER_AGENT), mount: '' }
  const operations = Object.values({ ...OPENAI, ...OTHERS })
    .flat()
    .filter(isReached)
  expect(new Set(operations.map(({ asks }) => asks))).toEqual(new Set(['read', 'call', 'cancel', 'content']))
  for (const operation of operations) {
    const decision = await decisionAbout(operation, place, 'for this agent')
    expect([nameOf(operation), decision]).toEqual([nameOf(operation), operation.asks === 'read' ? 'admitted' : 'forbidden'])
  }
})

verifies('identity:matrix:same', 'an agent is hosted by those who may host it, however the token comes', async () => {
  const extensions = { uamp: { connect: { version: 1 } } }
  const hello = { ...CREATE, agent: GUEST, session: { modalities: ['text'], extensions } }
  const asked = { asks: 'host', agent: GUEST } as const
  for (const socket of SOCKETS.filter(({ byMessage }) => byMessage)) {
    for (const way of waysOf(socket)) {
      const row = await rowOf((caller) => knock(world, { ...socket, hello }, { caller, way, mount: '' }))
      expect({ [`${socket.route} by ${way}`]: row }).toEqual({ [`${socket.route} by ${way}`]: rowFor(asked) })
    }
  }
})
