/** What else can be done by requests: events, AG-UI, ACP, media, tokens, and what is the server's own. */
import { messageOf, METHODS } from './acp.ts'
import type { Operation } from './operation.ts'
import { AGENT } from './rule.ts'
import { INITIALIZE, MARK, type Request } from './world.ts'

const get = (path: string, headers: Readonly<Record<string, string>> = {}): Request => ({ method: 'GET', path, headers })
const post = (path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Request => ({
  method: 'POST',
  path,
  body,
  headers,
})
const STREAM = { accept: 'text/event-stream' }
const UAMP = { form: 'uamp' } as const
const OMNIA = { form: 'omnia' } as const
const ACP = { form: 'acp' } as const
const newId = (): string => crypto.randomUUID()

const run = () => ({ threadId: newId(), runId: newId(), messages: [{ id: 'm', role: 'user', content: 'Hello' }], tools: [], context: [] })
const [session, number] = [0, 1].map((part) => (place: string) => place.split('/')[part] ?? '') as [
  (place: string) => string,
  (place: string) => string,
]
const wanted = { filename: 'a.txt', mime_type: 'text/plain', size_bytes: 5 }

/** The types of events have rows of their own: see events.ts. */
const EVENTS: readonly Operation[] = [
  { ...UAMP, route: 'POST /events', asks: 'call', request: () => post('/events', [{ type: 'session.create', agent: AGENT }]) },
  { ...UAMP, route: 'POST /events', what: 'ping', asks: 'read', request: () => post('/events', { type: 'ping' }) },
  {
    ...UAMP,
    route: 'GET /events/stream',
    asks: 'read',
    thing: 'session',
    request: (id) => get('/events/stream', { 'x-session-id': id, ...STREAM }),
  },
  { ...UAMP, route: 'GET /schemas/events.json', asks: 'public', request: () => get('/schemas/events.json') },
]

const AG_UI: readonly Operation[] = [
  { ...UAMP, route: 'POST /ag-ui', asks: 'call', request: () => post('/ag-ui', run()) },
  { ...UAMP, route: 'GET /ag-ui/runs/:runId', asks: 'read', thing: 'run', request: (id) => get(`/ag-ui/runs/${id}`) },
  { ...UAMP, route: 'GET /ag-ui/threads/:threadId', asks: 'read', thing: 'run', request: (id) => get(`/ag-ui/threads/${id}`) },
  { ...UAMP, route: 'GET /ag-ui/capabilities', asks: 'public', request: () => get('/ag-ui/capabilities') },
]

const MEDIA: readonly Operation[] = [
  {
    ...OMNIA,
    route: 'POST /media/request-upload',
    asks: 'content',
    thing: 'session',
    request: (id) => post('/media/request-upload', { session_id: id, ...wanted }),
  },
  {
    ...OMNIA,
    route: 'POST /media/confirm-upload/:id',
    asks: 'content',
    thing: 'upload',
    request: (place) => post(`/media/confirm-upload/upl-${number(place)}`),
  },
  {
    ...OMNIA,
    route: 'GET /media/info/:session/:id',
    asks: 'read',
    thing: 'upload',
    request: (place) => get(`/media/info/${session(place)}/med-${number(place)}`),
  },
  {
    ...OMNIA,
    route: 'GET /media/download/:session/:id',
    asks: 'read',
    thing: 'upload',
    request: (place) => get(`/media/download/${session(place)}/med-${number(place)}`),
  },
  {
    ...OMNIA,
    route: 'PUT /media/upload/:id',
    asks: 'url',
    thing: 'uploadUrl',
    once: true,
    request: (url) => ({ method: 'PUT', path: url, body: MARK }),
  },
]

/** What is said over a connection has rows of its own: see acp.ts. */
const ACP_HTTP: readonly Operation[] = [
  ...(['prompt/submit', 'chat/submit', 'tools/list', 'tools/call', 'capabilities'] as const).map((method): Operation => ({
    ...ACP,
    route: 'POST /acp',
    what: `${method}, without a connection`,
    asks: METHODS[method]?.asks ?? 'call',
    request: () => post('/acp', messageOf(method, '')),
  })),
  {
    ...ACP,
    route: 'POST /acp',
    what: 'the older initialize',
    asks: 'read',
    request: () => post('/acp', { ...INITIALIZE, params: { protocolVersion: '1.0' } }),
  },
  { ...ACP, route: 'POST /acp', asks: 'read', request: () => post('/acp', INITIALIZE) },
  {
    ...ACP,
    route: 'GET /acp',
    asks: 'read',
    thing: 'connection',
    once: true,
    request: (id) => get('/acp', { 'acp-connection-id': id, ...STREAM }),
  },
  // Whoever may have a connection may close it.
  {
    ...ACP,
    route: 'DELETE /acp',
    asks: 'read',
    thing: 'connection',
    once: true,
    request: (id) => ({ method: 'DELETE', path: '/acp', headers: { 'acp-connection-id': id } }),
  },
]

const wellKnown = (name: string): Operation => ({
  form: 'oauth',
  route: `GET /.well-known/${name}`,
  asks: 'public',
  request: () => get(`/.well-known/${name.replace(':name', AGENT)}`),
})
const form = (path: string, fields: Readonly<Record<string, string>>): Operation => ({
  form: 'oauth',
  route: `POST ${path}`,
  asks: 'client',
  request: () => post(path, new URLSearchParams(fields).toString(), { 'content-type': 'application/x-www-form-urlencoded' }),
})

const ISSUER: readonly Operation[] = [
  ...['jwks.json', 'openid-configuration', 'oauth-authorization-server', 'oauth-authorization-server/agents/:name'].map(wellKnown),
  form('/auth/token', { grant_type: 'client_credentials' }),
  form('/auth/revoke', { token: 'x' }),
]

const PAYMENTS: readonly Operation[] = [
  { ...UAMP, route: 'POST /api/payments/verify', asks: 'pay', request: () => post('/api/payments/verify', { token: 'x' }) },
  ...['tokens', 'balance', 'statements'].map((name): Operation => ({
    ...UAMP,
    route: `GET /api/payments/${name}`,
    asks: 'pay',
    request: () => get(`/api/payments/${name}`),
  })),
  ...['deposit', 'withdraw'].map((name): Operation => ({
    ...UAMP,
    route: `POST /api/payments/${name}`,
    asks: 'bank',
    request: () => post(`/api/payments/${name}`, { principal: 'alice', amount: '1' }),
  })),
]

/** Locks, tokens and payments have rules of their own, which also ask who opened, holds or is paid: test/payments/rest-hostile.test.ts. */
export const OF_MONEY = [
  ...['lock', 'settle', 'release', 'delegate', 'tokens', 'tokens/:id/topup', 'refund'].map((path) => `POST /api/payments/${path}`),
  ...['GET', 'PATCH', 'DELETE'].map((method) => `${method} /api/payments/lock/:id`),
  ...['GET', 'DELETE'].map((method) => `${method} /api/payments/tokens/:id`),
  'GET /api/payments/payments/:id',
]

const SERVER: readonly Operation[] = [
  ...['/', '/agents', '/health', '/ready'].map((path): Operation => ({
    ...UAMP,
    route: `GET ${path}`,
    asks: 'public',
    atRoot: true,
    request: () => get(path),
  })),
  { ...UAMP, route: 'GET /metrics', asks: 'operate', atRoot: true, request: () => get('/metrics') },
]

export const OTHERS: Readonly<Record<string, readonly Operation[]>> = {
  'UAMP events': EVENTS,
  'AG-UI': AG_UI,
  'media of Omnia': MEDIA,
  ACP: ACP_HTTP,
  'the token endpoint': ISSUER,
  payments: PAYMENTS,
  'the server itself': SERVER,
}
