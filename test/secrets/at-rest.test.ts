import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { serve, type RunningServer } from '../../src/compose/index.ts'
import { defineAgent } from '../../src/core/define-agent.ts'
import { text } from '../../src/core/drafts.ts'
import { storeKey } from '../../src/core/store-key.ts'
import { isRecord } from '../../src/protocol/json.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { overSse, overWebSocket } from '../support/wire.ts'
import { post, talk } from './raw.ts'

const short = (secret: string): string => createHash('sha256').update(secret).digest('hex').slice(0, 8)

/** Takes a payment, says which one it was, and then asks the client's tool where it is told to. */
const bot = defineAgent('bot', async function* (turn) {
  const said = turn.messages.findLast(({ role }) => role === 'user')?.content ?? ''
  if (!said.includes('pay')) return yield text('nothing to pay')
  if (said.includes('first')) yield text('first this. ')
  const { payment } = await turn.ask('payment.required', { requirements: { amount: '1', currency: 'USD' } })
  yield text(`paid by ${short(payment.token ?? JSON.stringify(payment.proof))}. `)
  if (!said.includes('tool')) return
  const { result } = await turn.ask('tool.call', { name: 'weather', arguments: '{}', call_id: 'call_1' })
  yield text(`the tool said ${result}`)
})

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'uamp-at-rest-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

async function start(data: string): Promise<RunningServer & { readonly errors: string[] }> {
  const errors: string[] = []
  const log = (level: string, message: string, fields?: object): void => {
    if (level === 'error') errors.push(`${message} ${String(Object.values(fields ?? {}))}`)
  }
  const server = await serve(bot, { port: 0, data, log, outbound: { allow: ['127.0.0.1'] } })
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => (closing ??= server.close({ graceMs: 0 }))
  onTestFinished(close)
  return { ...server, close, errors }
}

/** Every byte of every file, but of the key. */
function bytesIn(data: string): Buffer {
  const files = readdirSync(data, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile() && entry.name !== 'uamp.key')
  expect(files.map(({ name }) => name)).toContain('uamp.db')
  return Buffer.concat(files.map((entry) => readFileSync(join(entry.parentPath, entry.name))))
}

/** The secrets that are there in any form. */
function found(data: string, secrets: readonly string[]): string[] {
  const bytes = bytesIn(data)
  return secrets.filter((secret) =>
    [
      secret,
      encodeURIComponent(secret),
      Buffer.from(secret).toString('base64').slice(0, 20),
      Buffer.from(`x${secret}`).toString('base64').slice(2, 20),
      Buffer.from(`xx${secret}`).toString('base64').slice(3, 20),
    ].some((form) => bytes.includes(form)),
  )
}

let made = 0
/** A secret of its own for each place, so that it can be told which one is not kept well. */
const secret = (where: string): string => `SECRET-${where}-${++made}-9f8e7d6c5b4a`

const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params })
const oneOh = (message: object, more: object = {}) =>
  rpc('SendMessage', { message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', ...message }, ...more })
const idIn = (answer: string, pattern: RegExp): string => pattern.exec(answer)?.[1] ?? expect.fail(`No ${pattern} in ${answer}`)

type Way = (url: string, token: string) => Promise<string>

async function overEvents(wire: Awaited<ReturnType<typeof overWebSocket>>, token: string): Promise<string> {
  const slots = (where: string) => ({
    extensions: { app: { payment_token: `${token}-${where}-e` } },
    metadata: { 'x-payment': `${token}-${where}-m` },
  })
  const session_id = await wire.open({
    payment_token: `${token}-create`,
    session: {
      modalities: ['text'],
      payment_token: `${token}-inside`,
      extensions: { app: { payment_token: `${token}-config`, authorization: `${token}-auth` } },
    },
  })
  await wire.send({
    type: 'session.update',
    session_id,
    payment_token: `${token}-update`,
    session: { extensions: { app: { ap2_credential: { vc: `${token}-changed` } } } },
  })
  await wire.send({
    type: 'input.text',
    text: 'pay',
    payment_token: `${token}-text`,
    context: { payment: { scheme: 'x402', proof: { sig: `${token}-proof` } } },
    ...slots('text'),
  })
  await wire.send({
    type: 'response.create',
    response: { extensions: { app: { payment_token: `${token}-response` } } },
    ...slots('create'),
  })
  await wire.next('payment.required')
  const payment = { scheme: 'token', token, proof: { deep: [`${token}-deep`] }, ap2_credential: { vc: `${token}-vc` } }
  await wire.send({ type: 'payment.submit', payment, ...slots('submit') })
  await wire.next('response.done')
  await wire.send({ type: 'input.text', text: 'and', payment_token: `${token}-pending` })
  return JSON.stringify(wire.heard)
}

/** Every way in which a client brings what it pays with. Each ends with the payment used, but where it says otherwise. */
const ways: Readonly<Record<string, Way>> = {
  'events, WebSocket': async (url, token) => overEvents(await overWebSocket(url), token),
  'events, HTTP': async (url, token) => overEvents(await overSse(url), token),
  'Responses, header': (url, token) => post(`${url}/v1/responses`, { input: 'pay', store: true }, { 'x-payment': token }),
  'Responses, streamed, header': (url, token) =>
    post(
      `${url}/v1/responses`,
      { input: 'pay', store: true, stream: true, metadata: { payment_token: `${token}-meta` } },
      { 'payment-signature': token },
    ),
  'Completions, stored': (url, token) =>
    post(
      `${url}/v1/chat/completions`,
      { messages: [{ role: 'user', content: 'pay' }], store: true, metadata: { payment_token: `${token}-meta` } },
      { 'x-payment-token': token },
    ),
  'A2A, header': (url, token) => post(`${url}/a2a`, oneOh({ parts: [{ text: 'pay' }] }), { 'x-payment': token }),
  'A2A, x402 as a text': async (url, token) => {
    const asked = await post(`${url}/a2a`, oneOh({ parts: [{ text: 'pay' }] }, { metadata: { payment_token: `${token}-request` } }))
    const taskId = idIn(asked, /"task":\{"id":"([^"]+)"/)
    const metadata = { 'x402.payment.status': 'payment-submitted', 'x402.payment.payload': token, 'x-payment': `${token}-too` }
    return post(`${url}/a2a`, oneOh({ taskId, parts: [{ text: 'here' }], metadata }))
  },
  'A2A, x402 as an object, streamed': async (url, token) => {
    const asked = await post(`${url}/a2a`, oneOh({ parts: [{ text: 'pay' }] }))
    const taskId = idIn(asked, /"task":\{"id":"([^"]+)"/)
    const metadata = {
      'x402.payment.payload': { x402Version: 2, accepted: { scheme: 'exact', network: 'base' }, payload: { signature: token } },
    }
    const message = { messageId: 'm2', role: 'ROLE_USER', taskId, parts: [{ text: 'here' }], metadata }
    return post(`${url}/a2a`, rpc('SendStreamingMessage', { message }))
  },
  'A2A, a data part': async (url, token) => {
    const asked = await post(`${url}/a2a`, oneOh({ parts: [{ text: 'pay' }] }))
    const taskId = idIn(asked, /"task":\{"id":"([^"]+)"/)
    return post(`${url}/a2a`, oneOh({ taskId, parts: [{ data: { type: 'payment.submit', payment: { scheme: 'token', token } } }] }))
  },
  'A2A, a data part and x402 that nobody asked for': (url, token) =>
    post(
      `${url}/a2a`,
      oneOh({
        parts: [{ text: 'hello' }, { data: { type: 'payment.submit', payment: { scheme: 'token', token } } }],
        metadata: { 'x402.payment.payload': `${token}-early` },
      }),
    ),
  'A2A 0.3': async (url, token) => {
    const asked = await post(
      `${url}/a2a`,
      rpc('message/send', { message: { kind: 'message', messageId: 'm1', role: 'user', parts: [{ kind: 'text', text: 'pay' }] } }),
    )
    const taskId = idIn(asked, /"id":"([^"]+)","contextId"/)
    const metadata = { 'x402.payment.payload': token }
    return post(
      `${url}/a2a`,
      rpc('message/send', {
        message: { kind: 'message', messageId: 'm2', taskId, role: 'user', parts: [{ kind: 'text', text: 'here' }], metadata },
      }),
    )
  },
  'AG-UI, header': (url, token) => post(`${url}/ag-ui`, run('pay'), { 'x-payment': token }),
  'AG-UI, property': (url, token) =>
    post(`${url}/ag-ui`, { ...run('pay'), forwardedProps: { uamp: { payment_token: token }, app: { payment_token: `${token}-app` } } }),
  'AG-UI, resume': async (url, token) => {
    const first = { ...run('first, then pay'), protocolVersion: '1.0' }
    const asked = await post(`${url}/ag-ui`, first)
    const resume = [{ interruptId: idIn(asked, /"interrupts":\[\{"id":"([^"]+)"/), status: 'resolved', payload: { payment_token: token } }]
    return post(`${url}/ag-ui`, { ...first, runId: crypto.randomUUID(), resume })
  },
  'ACP, prompt': (url, token) =>
    overAcp(url, (sessionId) => ({
      sessionId,
      prompt: [{ type: 'text', text: 'pay' }],
      payment_token: token,
      _meta: { payment_token: `${token}-meta` },
    })),
  'ACP, _meta': (url, token) =>
    overAcp(url, (sessionId) => ({ sessionId, prompt: [{ type: 'text', text: 'pay' }], _meta: { 'uamp/payment_token': token } })),
  'ACP, prompt/submit': (url, token) =>
    post(`${url}/acp`, rpc('prompt/submit', { messages: [{ role: 'user', content: 'pay' }], payment_token: token })),
  'ACP, header': (url, token) =>
    post(`${url}/acp`, rpc('prompt/submit', { messages: [{ role: 'user', content: 'pay' }] }), { 'x-payment': token }),
  Omnia: (url, token) =>
    talk(
      `${url}/omnia?agent=bot`,
      [
        { type: 'message', content: 'pay', metadata: { payment_token: `${token}-early` } },
        (heard) => {
          const session_id = /"session_id":"([^"]+)"/.exec(heard)?.[1]
          const again = { type: 'message', session_id, content: 'pay', metadata: { payment_token: token } }
          return /PAYMENT_REQUIRED/.test(heard) ? again : undefined
        },
      ],
      /"type":"done"/,
    ),
  Realtime: (url, token) =>
    talk(
      `${url}/v1/realtime?model=m`,
      [
        { type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'pay' }] } },
        { type: 'response.create', response: { output_modalities: ['text'] } },
        (heard) => (/payment\.required/.test(heard) ? { type: 'payment.submit', payment: { scheme: 'token', token } } : undefined),
      ],
      /"type":"response\.done"/,
    ),
}

const run = (content: string) => ({
  threadId: crypto.randomUUID(),
  runId: crypto.randomUUID(),
  messages: [{ id: crypto.randomUUID(), role: 'user', content }],
})

function overAcp(url: string, prompt: (session: string) => object): Promise<string> {
  return talk(
    `${url}/acp`,
    [
      { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1 } },
      { jsonrpc: '2.0', id: 2, method: 'session/new', params: { cwd: '/', mcpServers: [] } },
      (heard) => {
        const { id, result } = JSON.parse(heard) as { id?: number; result?: { sessionId: string } }
        return id === 2 ? { jsonrpc: '2.0', id: 3, method: 'session/prompt', params: prompt(result?.sessionId ?? '') } : undefined
      },
    ],
    /"id":3\b/,
  )
}

test.each(Object.entries(ways))('what is paid with is nowhere in the data folder: %s', async (name, pay) => {
  const data = folder()
  const server = await start(data)
  const token = secret(name.replaceAll(/\W/g, ''))
  const answer = await pay(server.url, token)
  if (!name.includes('nobody asked')) {
    const isProof = name.includes('object')
    expect(answer).toContain(isProof ? 'paid by' : `paid by ${short(token)}`)
  }
  expect(found(data, [token])).toEqual([])
  await server.close()
  expect(found(data, [token])).toEqual([])
  expect(server.errors).toEqual([])
})

const URL_SECRET = 'https://127.0.0.1:1/hook?key='

test('neither are the credentials of webhooks, of any generation', async () => {
  const data = folder()
  const server = await start(data)
  const secrets = Array.from({ length: 12 }, (_, index) => secret(`hook${index}`))
  const [a = '', b = '', c = '', d = '', e = '', f = '', g = '', h = '', i = '', j = '', k = '', l = ''] = secrets
  const say = { parts: [{ text: 'hello' }] }
  const hook = (token: string, credentials: string, key: string) => ({
    url: URL_SECRET + key,
    token,
    authentication: { scheme: 'Bearer', credentials },
  })
  const old = (token: string, credentials: string, key: string) => ({
    url: URL_SECRET + key,
    token,
    authentication: { schemes: ['Bearer'], credentials },
  })
  const begun = await post(
    `${server.url}/a2a`,
    oneOh(say, { configuration: { taskPushNotificationConfig: hook(a, b, c), returnImmediately: true } }),
  )
  const taskId = idIn(begun, /"task":\{"id":"([^"]+)"/)
  const set = await post(`${server.url}/a2a`, rpc('CreateTaskPushNotificationConfig', { taskId, id: 'two', ...hook(d, e, f) }))
  expect(set).toContain(d)
  const three = await post(
    `${server.url}/a2a`,
    rpc('message/send', {
      message: { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'hello' }] },
      configuration: { blocking: false, pushNotificationConfig: old(g, h, i) },
    }),
  )
  expect(three).toContain('"result"')
  const one = await post(
    `${server.url}/a2a`,
    rpc('tasks/send', { id: 'first', message: { role: 'user', parts: [{ type: 'text', text: 'hello' }] }, pushNotification: old(j, k, l) }),
  )
  expect(one).toContain('"result"')
  expect(found(data, secrets)).toEqual([])
  await server.close()
  expect(found(data, secrets)).toEqual([])
  const again = await start(data)
  // They are there for whoever set them, also after a restart.
  const told = await post(`${again.url}/a2a`, rpc('ListTaskPushNotificationConfigs', { taskId }))
  for (const each of [a, b, c, d, e, f]) expect(told).toContain(each)
})

test('a run that was paid and waits goes on after a restart, and leaves only a digest', async () => {
  const data = folder()
  const server = await start(data)
  const token = secret('waiting')
  const asked = await post(`${server.url}/a2a`, oneOh({ parts: [{ text: 'pay, and use the tool' }] }))
  const taskId = idIn(asked, /"task":\{"id":"([^"]+)"/)
  const waits = await post(`${server.url}/a2a`, oneOh({ taskId, parts: [{ text: 'here' }], metadata: { 'x402.payment.payload': token } }))
  expect(waits).toContain('TASK_STATE_INPUT_REQUIRED')
  expect(found(data, [token])).toEqual([])
  expect(await sealedIn(server, data)).toBe(1)
  const again = await start(data)
  const answer = { type: 'tool.result', call_id: 'call_1', result: 'sunny' }
  const done = await post(`${again.url}/a2a`, oneOh({ taskId, parts: [{ data: answer }] }))
  expect(done).toContain('the tool said sunny')
  expect(done).toContain(`paid by ${short(token)}`)
  expect(found(data, [token])).toEqual([])
  expect(await sealedIn(again, data)).toBe(0)
})

test('a payment that was acknowledged before its response was asked for is kept, and used after a restart', async () => {
  const data = folder()
  const server = await start(data)
  const token = secret('acknowledged')
  const asked = await post(`${server.url}/a2a`, oneOh({ parts: [{ text: 'pay' }] }))
  const taskId = idIn(asked, /"task":\{"id":"([^"]+)"/)
  const step = await taskIn(server, data, taskId)
  const before = await start(data)
  const session = await before.gateway.attach(step.session, { tenant: 'default', id: 'anonymous', scopes: [] })
  await session?.send({ type: 'payment.submit', event_id: 'pay-1', payment: { scheme: 'token', token } })
  expect(found(data, [token])).toEqual([])
  expect(await sealedIn(before, data)).toBe(1)
  const again = await start(data)
  const back = await again.gateway.attach(step.session, { tenant: 'default', id: 'anonymous', scopes: [] })
  const reader = back?.read({ extensions: 'all' })
  await back?.send({ type: 'response.create', event_id: 'go-on' })
  let told = ''
  for await (const batch of reader ?? []) {
    told += JSON.stringify([...batch].map(({ event }) => event))
    if (told.includes('response.done')) break
  }
  expect(told).toContain(`paid by ${short(token)}`)
  expect(found(data, [token])).toEqual([])
  expect(await sealedIn(again, data)).toBe(0)
})

test('a folder of a version that stored them as they were opens, and is sealed as it is written again', async () => {
  const data = folder()
  const first = await start(data)
  const [token, hookToken] = [secret('old'), secret('oldhook')]
  const asked = await post(
    `${first.url}/a2a`,
    oneOh({ parts: [{ text: 'pay, and use the tool' }] }, { configuration: { acceptedOutputModes: ['text'] } }),
  )
  const taskId = idIn(asked, /"task":\{"id":"([^"]+)"/)
  const { session, turn } = await taskIn(first, data, taskId)
  const store = sqliteStore({ path: join(data, 'uamp.db') })
  // The turn has been paid, as if it had been answered before; a webhook has been set.
  const key = storeKey('default', 'turn', turn)
  const found1 = await store.get(key)
  const question = { id: 'call_1', key: 'tool.call#1', type: 'tool.call' }
  const paid = { type: 'payment.submit', event_id: 'p', payment: { scheme: 'token', token } }
  await store.set(
    key,
    { ...(isRecord(found1?.value) ? found1.value : {}), answers: { 'payment.required#1': paid }, questions: [question] } as never,
    {
      index: { [storeKey('default', 'turns', session)]: turn },
    },
  )
  await store.set(storeKey('default', 'a2a-push', 'anonymous', taskId), [
    { id: 'old', taskId, url: 'https://127.0.0.1:1/', token: hookToken },
  ])
  await store.close()
  expect(found(data, [token, hookToken])).toHaveLength(2)
  const again = await start(data)
  const told = await post(`${again.url}/a2a`, rpc('ListTaskPushNotificationConfigs', { taskId }))
  expect(told).toContain(hookToken)
  await post(`${again.url}/a2a`, rpc('CreateTaskPushNotificationConfig', { taskId, id: 'new', url: 'https://127.0.0.1:1/', token: 'x' }))
  const answer = { type: 'tool.result', call_id: 'call_1', result: 'sunny' }
  const done = await post(`${again.url}/a2a`, oneOh({ taskId, parts: [{ data: answer }] }))
  expect(done).toContain(`paid by ${short(token)}`)
  expect(await rows(again, data, [token, hookToken])).toBe(0)
})

test('another key, or half of one, is refused at the start', async () => {
  const data = folder()
  const server = await start(data)
  await server.close()
  const path = join(data, 'uamp.key')
  const key = readFileSync(path, 'utf8')
  writeFileSync(path, key.slice(0, 30))
  await expect(start(data)).rejects.toThrow(/does not hold a whole key/)
  rmSync(path)
  await expect(start(data)).rejects.toThrow(/were sealed with the key/)
  writeFileSync(path, key, { mode: 0o600 })
  await (await start(data)).close()
})

/** Texts of records that the server's store has and that hold one of these. The server is stopped for it. */
async function rows(server: RunningServer, data: string, texts: readonly string[]): Promise<number> {
  await server.close()
  const { default: Database } = await import('libsql')
  const db = new Database(join(data, 'uamp.db'))
  const tables = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all() as { name: string }[]
  const all = tables.flatMap(({ name }) => (db.prepare(`SELECT * FROM "${name}"`).all() as object[]).map((row) => [name, row] as const))
  db.close()
  const hit = all.filter(([, row]) => texts.some((text) => Object.values(row).some((value) => String(value).includes(text))))
  return hit.filter(([, row]) => !JSON.stringify(row).includes('sealed-with')).length
}

const sealedIn = (server: RunningServer, data: string): Promise<number> => rows(server, data, ['uamp-sealed'])

/** Where a task of A2A stands. The server is stopped for it. */
async function taskIn(server: RunningServer, data: string, taskId: string): Promise<{ session: string; turn: string }> {
  await server.close()
  const store = sqliteStore({ path: join(data, 'uamp.db') })
  const stored = await store.get(storeKey('default', 'a2a-task', 'anonymous', taskId))
  await store.close()
  const { steps } = stored?.value as unknown as { steps: { session: string; turn: string }[] }
  return steps[0] ?? expect.fail('There is no step')
}
