import { expect, test } from 'vitest'
import { overSse, overWebSocket } from '../support/wire.ts'
import { folder, found, idIn, oneOh, rpc, secret, short, start } from './at-rest.ts'
import { post, talk } from './raw.ts'

type Way = (url: string, token: string) => Promise<string>

async function overEvents(wire: Awaited<ReturnType<typeof overWebSocket>>, token: string): Promise<string> {
  const slots = (where: string) => ({
    extensions: { app: { payment_token: `${token}-${where}-e` } },
    metadata: { 'x-payment': `${token}-${where}-m` },
  })
  const extensions = { app: { payment_token: `${token}-config`, authorization: `${token}-auth` } }
  const session_id = await wire.open({ session: { modalities: ['text'], extensions } })
  const context = { payment: { scheme: 'x402', proof: { sig: `${token}-proof` } } }
  await wire.send({ type: 'input.text', text: 'pay', context, ...slots('text') })
  const response = { extensions: { app: { payment_token: `${token}-response` } } }
  await wire.send({ type: 'response.create', response, ...slots('create') })
  await wire.next('payment.required')
  const payment = { scheme: 'token', token, proof: { deep: [`${token}-deep`] }, ap2_credential: { vc: `${token}-vc` } }
  await wire.send({ type: 'payment.submit', payment, ...slots('submit') })
  await wire.next('response.done')
  const heard = JSON.stringify(wire.heard)
  // What is paid ahead is not asked for.
  const changed = { extensions: { app: { ap2_credential: { vc: `${token}-changed` } } } }
  await wire.send({ type: 'session.update', session_id, payment_token: `${token}-update`, session: changed })
  await wire.send({ type: 'input.text', session_id, text: 'pay', payment_token: `${token}-text` })
  await wire.send({ type: 'response.create', session_id })
  await wire.next('response.done')
  await wire.send({ type: 'input.text', session_id, text: 'and', payment_token: `${token}-pending` })
  const other = await wire.open({
    payment_token: `${token}-open`,
    session: { modalities: ['text'], payment_token: `${token}-inside`, extensions },
  })
  await wire.send({ type: 'input.text', session_id: other, text: 'pay' })
  await wire.send({ type: 'response.create', session_id: other })
  await wire.next('response.done')
  return heard
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
        { type: 'message', content: 'pay' },
        (heard) => {
          const session_id = /"session_id":"([^"]+)"/.exec(heard)?.[1]
          const again = { type: 'message', session_id, content: 'pay', metadata: { payment_token: token } }
          return /PAYMENT_REQUIRED/.test(heard) ? again : undefined
        },
      ],
      /"type":"done"/,
    ),
  'Omnia, in advance': (url, token) =>
    talk(`${url}/omnia?agent=bot`, [{ type: 'message', content: 'pay', metadata: { payment_token: token } }], /"type":"done"/),
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

test('neither is what a client of AG-UI wants back: its state, properties, context and the metadata of its messages', async () => {
  const data = folder()
  const server = await start(data)
  const secrets: string[] = []
  const mark = (place: string): string => {
    secrets.push(secret(`agui${place}`))
    return secrets.at(-1) as string
  }
  const slot = (place: string) => ({
    payment_token: mark(`${place}token`),
    deep: [{ authorization: mark(`${place}auth`), password: mark(`${place}password`) }],
    payment: { scheme: 'x402', proof: { signature: mark(`${place}proof`) } },
  })
  const image = (place: string) => ({
    type: 'image',
    source: { type: 'data', value: 'aGVsbG8=', mimeType: 'image/png' },
    metadata: slot(`${place}part`),
  })
  const sent = (place: string) => ({
    threadId: 'kept',
    runId: place,
    protocolVersion: '1.0',
    state: { ...slot(`${place}state`), seen: 'a state' },
    context: [{ description: 'who asks', value: slot(`${place}context`), ...slot(`${place}entry`) }],
    messages: [{ id: place, role: 'user', content: [{ type: 'text', text: 'hello' }, image(place)], metadata: slot(`${place}message`) }],
    forwardedProps: { ...slot(`${place}props`), uamp: { input: true, join: true, payment_token: mark(`${place}own`) } },
    more: slot(`${place}more`),
  })
  for (const runId of ['first', 'second']) {
    const told = await post(`${server.url}/ag-ui`, sent(runId))
    expect(told).toContain('nothing to pay')
    const again = await (await fetch(`${server.url}/ag-ui/runs/${runId}`)).text()
    for (const answer of [told, again]) {
      const begun = idIn(answer, /(\{"type":"RUN_STARTED".*)/)
      expect(begun).toMatch(/"input":\{.*"seen":"a state"/)
      expect(secrets.filter((each) => begun.includes(each))).toEqual([])
    }
  }
  expect(secrets.length).toBeGreaterThan(40)
  expect(found(data, secrets)).toEqual([])
  await server.close()
  expect(found(data, secrets)).toEqual([])
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
