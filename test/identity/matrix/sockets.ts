/** Every socket: what is decided when it is opened, and by its first message. */
import { decisionIn, decisionOf, type Form } from './forms.ts'
import { Line, type Heard } from './line.ts'
import { AGENT, type Asks, type Caller } from './rule.ts'
import { INITIALIZE, type World } from './world.ts'

export interface SocketOf {
  /** The route, as the server lists it. */
  readonly route: string
  readonly path: string
  readonly asks: Asks
  readonly form: Form
  /** What a client says first, where the server does not speak first. */
  readonly hello?: object
  /** What is offered beside a token, where the protocol has a name for it. */
  readonly subprotocol?: string
  /** The token may come in the first message. */
  readonly byMessage?: true
}

const CREATE = { type: 'session.create', uamp_version: '1.0', event_id: 'e1', agent: AGENT, session: { modalities: ['text'] } }

export const SOCKETS: readonly SocketOf[] = [
  ...['/uamp', '/ws'].map(
    (path) => ({ route: `WS ${path}`, path, asks: 'call', form: 'uamp', hello: CREATE, subprotocol: 'uamp', byMessage: true }) as const,
  ),
  ...['/responses', '/v1/responses'].map((path) => {
    const hello = { type: 'response.create', model: AGENT, input: 'Hello' }
    return { route: `WS ${path}`, path, asks: 'call', form: 'openai', hello } as const
  }),
  ...['/realtime', '/v1/realtime'].map(
    (path) => ({ route: `WS ${path}`, path, asks: 'call', form: 'openai', subprotocol: 'realtime' }) as const,
  ),
  ...['/omnia', '/', '/api/agents/:namespace/:name/ws'].map((route) => {
    const path = route.replace(':namespace', 'default').replace(':name', AGENT)
    return { route: `WS ${route}`, path, asks: 'call', form: 'omnia', subprotocol: 'uamp' } as const
  }),
  ...['/acp', '/acp/stream'].map(
    (path) => ({ route: `WS ${path}`, path, asks: 'read', form: 'acp', hello: INITIALIZE, subprotocol: 'uamp' }) as const,
  ),
]

export type Way = 'header' | 'subprotocol' | 'message'

export function waysOf({ subprotocol, byMessage }: SocketOf): readonly Way[] {
  return ['header', ...(subprotocol === undefined ? [] : (['subprotocol'] as const)), ...(byMessage ? (['message'] as const) : [])]
}

interface Knock {
  readonly caller: Caller
  readonly way: Way
  /** What comes before the path. */
  readonly mount: string
}

/** What a caller is told who comes to a socket with a token. */
export async function knock(world: World, socket: SocketOf, { caller, way, mount }: Knock): Promise<string> {
  const { form, path, hello, subprotocol = '' } = socket
  const headers = world.headersOf(caller)
  const token = headers['authorization']?.replace('Bearer ', '')
  const offered = token === undefined ? [] : [`uamp.token.${Buffer.from(token).toString('base64url')}`]
  const line = await Line.open(world.url, {
    path: mount + path,
    ...(way === 'header' && { headers }),
    ...(way === 'subprotocol' && { protocols: [subprotocol, ...offered] }),
  })
  if (!(line instanceof Line)) return decisionOf(form, line)
  try {
    if (hello) line.send(way === 'message' ? { ...hello, token } : hello)
    return decisionIn(form, await line.next(isAnswer))
  } finally {
    line.close()
  }
}

/** How many requests are left is told beside the answers. */
const isAnswer = ({ type }: Heard): boolean => type !== 'rate_limit'
