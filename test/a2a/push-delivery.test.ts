import { expect, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import type { A2aOptions } from '../../src/serve/index.ts'
import { heldBytes, startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { caller, gate, kindOf, message, patient, stateOf, webhook, type Wire } from './push-support.ts'

const POLL = { timeout: 10_000 }
const FAST = { firstPauseMs: 1, longestPauseMs: 5 }

async function start(agent: AgentPort = patient(), pushLimits: A2aOptions['pushLimits'] = FAST) {
  const server = await startServer(agent, { a2a: { pushLimits }, outbound: { allow: ['127.0.0.1'] } })
  return { ...server, call: caller(server.url) }
}

/** Starts a task that tells a webhook. */
const send = (call: ReturnType<typeof caller>, config: object, more: object = {}): Promise<Wire> =>
  call('SendMessage', { message: message(), configuration: { taskPushNotificationConfig: config, ...more } })

verifies(
  ['a2a-1.0.push-payload', 'a2a-1.0.push-credentials', 'a2a-1.0.push-delivery'],
  'a webhook gets what a stream would, in order, with its credentials and its token',
  async () => {
    const hook = await webhook()
    const { call } = await start()
    const config = { url: `${hook.url}/hook?x=1`, token: 'tok-1', authentication: { scheme: 'Bearer', credentials: 'cred-1' } }
    const { result } = await send(call, config)
    await hook.untilEnd()
    for (const { headers, path, body } of hook.got) {
      expect(headers).toMatchObject({
        'content-type': 'application/a2a+json',
        authorization: 'Bearer cred-1',
        'x-a2a-notification-token': 'tok-1',
      })
      expect([path, Object.keys(body).length]).toEqual(['/hook?x=1', 1])
      expect(body.statusUpdate?.taskId ?? body.artifactUpdate?.taskId ?? body.task?.id).toBe(result.task.id)
    }
    const bodies = hook.got.map(({ body }) => body)
    expect(bodies.filter((body) => body.artifactUpdate).map((body) => body.artifactUpdate.artifact.parts[0].text)).toEqual(['one two'])
    expect(bodies.map(stateOf).filter((state) => state === 'completed')).toHaveLength(1)
    expect(stateOf(bodies.at(-1))).toBe('completed')
  },
)

test('generations before 1.0 get the whole task, in their own form', async () => {
  const hook = await webhook()
  const { call } = await start()
  const params = {
    message: { kind: 'message', messageId: 'm1', role: 'user', parts: [{ kind: 'text', text: 'Hello' }] },
    configuration: {
      blocking: true,
      pushNotificationConfig: { url: hook.url, token: 'tok', authentication: { schemes: ['Basic'], credentials: 'abc' } },
    },
  }
  const { result } = await call('message/send', params)
  await hook.untilEnd()
  for (const { headers, body } of hook.got) {
    expect(headers).toMatchObject({ 'content-type': 'application/json', authorization: 'Basic abc', 'x-a2a-notification-token': 'tok' })
    expect([kindOf(body), body.id]).toEqual(['task', result.id])
  }
  expect(hook.got.at(-1)?.body).toMatchObject({
    status: { state: 'completed' },
    artifacts: [{ parts: [{ kind: 'text', text: 'one two' }] }],
  })
})

test('a notification has the shape of the generation whose method set its config, whichever made the task', async () => {
  const [one, three, early] = [await webhook(), await webhook(), await webhook()]
  const { opened, open } = gate()
  const { call } = await start(patient(opened))
  const { result } = await send(call, { url: one.url }, { returnImmediately: true })
  const taskId = result.task.id
  const set = await call('tasks/pushNotificationConfig/set', { taskId, pushNotificationConfig: { id: 'three', url: three.url } })
  expect(set.result).toEqual({ taskId, pushNotificationConfig: { id: 'three', url: three.url } })
  await call('tasks/pushNotification/set', { id: taskId, pushNotificationConfig: { url: early.url } })
  const { configs } = (await call('ListTaskPushNotificationConfigs', { taskId })).result
  expect(configs).toHaveLength(3)
  for (const config of configs) expect(config).not.toHaveProperty('generation')
  open()
  await Promise.all([one.untilEnd(), three.untilEnd(), early.untilEnd()])
  const last = (hook: typeof one) => hook.got.find(({ body }) => stateOf(body) === 'completed')
  expect(last(one)).toMatchObject({ headers: { 'content-type': 'application/a2a+json' }, body: { statusUpdate: { taskId } } })
  expect(last(three)).toMatchObject({
    headers: { 'content-type': 'application/json' },
    body: { kind: 'task', id: taskId, status: { state: 'completed' }, artifacts: [{ parts: [{ kind: 'text', text: 'one two' }] }] },
  })
  expect(last(early)).toMatchObject({
    headers: { 'content-type': 'application/json' },
    body: { id: taskId, sessionId: result.task.contextId, artifacts: [{ parts: [{ type: 'text', text: 'one two' }] }] },
  })
  for (const { body } of three.got) expect(body.kind).toBe('task')
})

verifies(
  'a2a-1.0.push-delivery',
  'every webhook of a task is told, and one that fails does not hinder the others or the task',
  async () => {
    const good = await webhook()
    const bad = await webhook(() => 500)
    const { opened, open } = gate()
    const { call, logged } = await start(patient(opened), { ...FAST, attempts: 2 })
    const { result } = await send(call, { url: good.url }, { returnImmediately: true })
    const taskId = result.task.id
    await call('CreateTaskPushNotificationConfig', {
      taskId,
      url: bad.url,
      token: 'sesame',
      authentication: { scheme: 'Bearer', credentials: 'open' },
    })
    open()
    await Promise.all([good.untilEnd(), bad.untilEnd()])
    expect((await call('GetTask', { id: taskId })).result.status.state).toBe('TASK_STATE_COMPLETED')
    await expect.poll(() => logged.filter(({ message }) => message === 'A push notification was dropped').length, POLL).toBeGreaterThan(0)
    const [dropped] = logged.filter(({ message }) => message === 'A push notification was dropped')
    expect(dropped).toMatchObject({ level: 'warn', fields: { task: taskId, host: new URL(bad.url).host, why: 'it answered 500' } })
    expect(JSON.stringify(logged)).not.toMatch(/sesame|open/)
  },
)

verifies(
  'a2a-1.0.push-delivery',
  'what fails is sent again, when the webhook says or after a pause, and nothing overtakes it',
  async () => {
    const hook = await webhook((_, count, response) => {
      if (count === 1) return 503
      if (count === 2) return void response.writeHead(429, { 'retry-after': '0' }).end()
      if (count === 3) return void response.destroy()
      return 200
    })
    const { call } = await start()
    await send(call, { url: hook.url })
    await hook.untilEnd()
    const bodies = hook.got.map(({ body }) => JSON.stringify(body))
    expect(new Set(bodies.slice(0, 4)).size).toBe(1)
    expect(new Set(bodies.slice(3)).size).toBe(bodies.length - 3)
  },
)

test('an event is dropped after its last attempt, and what waits becomes one: the task', async () => {
  const { opened, open } = gate()
  const failing = await webhook(async (_, count) => {
    if (count > 3) return 200
    if (count === 3) await opened
    return 500
  })
  const files = defineAgent('files', async function* () {
    for (let n = 0; n < 5; n++) {
      yield {
        type: 'response.delta',
        delta: { type: 'file', file: `data:text/plain;base64,YQ==`, mime_type: 'text/plain', content_id: `c${n}` },
      } as Wire
    }
  })
  const { call } = await start(files, { ...FAST, attempts: 3 })
  const { result } = await send(call, { url: failing.url })
  open()
  await failing.until(() => failing.got.length >= 4)
  const [first, second, third, fourth] = failing.got.map(({ body }) => body)
  expect([second, third]).toEqual([first, first])
  expect(fourth).toMatchObject({ task: { id: result.task.id, status: { state: 'TASK_STATE_COMPLETED' } } })
  expect(fourth.task.artifacts).toHaveLength(5)
})

test('what waits for a slow webhook is bounded: it becomes the task as it is in the end', async () => {
  const { opened, open } = gate()
  const slow = await webhook(async (_, count) => {
    if (count === 1) await opened
    return 200
  })
  const many = defineAgent('many', async function* () {
    for (let n = 0; n < 50; n++) {
      yield {
        type: 'response.delta',
        delta: { type: 'file', file: `data:text/plain;base64,YQ==`, mime_type: 'text/plain', content_id: `c${n}` },
      } as Wire
    }
  })
  const { call } = await start(many, { ...FAST, queuedEvents: 4 })
  await send(call, { url: slow.url })
  open()
  await slow.untilEnd()
  expect(slow.got.length).toBeLessThan(8)
  const snapshot = slow.got.find(({ body }) => body.task?.artifacts)?.body
  expect(snapshot.task.artifacts).toHaveLength(50)
})

test('a task that was forgotten in between is found again in the store with its webhooks', async () => {
  const hook = await webhook()
  const { opened, open } = gate()
  const agent = defineAgent('both', (turn) => (turn.messages.at(-1)?.content === 'wait' ? patient(opened) : patient()).run(turn))
  const { call } = await start(agent, { ...FAST, tasks: 1 })
  const configuration = { taskPushNotificationConfig: { url: hook.url }, returnImmediately: true }
  await call('SendMessage', { message: message('wait'), configuration })
  await hook.until(() => hook.got.length > 0)
  for (let n = 0; n < 3; n++) await call('SendMessage', { message: message() })
  open()
  await hook.untilEnd()
})

test('what one owner has under way is bounded, and every webhook is told all the same', async () => {
  let open = 0
  let most = 0
  const hook = await webhook(async () => {
    most = Math.max(most, ++open)
    await new Promise((resolve) => setImmediate(resolve))
    open--
    return 200
  })
  const { opened, open: finish } = gate()
  const { call } = await start(patient(opened), { ...FAST, requestsPerOwner: 2 })
  const { result } = await send(call, { id: 'c0', url: `${hook.url}/c0` }, { returnImmediately: true })
  for (let n = 1; n < 10; n++)
    await call('CreateTaskPushNotificationConfig', { taskId: result.task.id, id: `c${n}`, url: `${hook.url}/c${n}` })
  finish()
  const told = () => new Set(hook.got.filter(({ body }) => stateOf(body) === 'completed').map(({ path }) => path)).size
  await hook.until(() => told() === 10)
  expect(most).toBeLessThanOrEqual(2)
})

verifies('a2a-1.0.push-ssrf', 'a redirect is not followed, and ends the matter', async () => {
  const target = await webhook()
  const hook = await webhook((_, __, response) => void response.writeHead(307, { location: `${target.url}/stolen` }).end())
  const { call, logged } = await start()
  await send(call, { url: hook.url, authentication: { scheme: 'Bearer', credentials: 'mine' } })
  await expect.poll(() => logged.some(({ fields }) => fields?.['why'] === 'it answered 307'), POLL).toBe(true)
  await hook.untilEnd()
  expect(target.got).toEqual([])
  // Each event was tried once: a redirect does not pass.
  expect(new Set(hook.got.map(({ body }) => JSON.stringify(body))).size).toBe(hook.got.length)
})

test('a webhook that does not answer in time has failed', async () => {
  const hook = await webhook((_, count) => (count === 1 ? undefined : 200))
  const { call } = await start(patient(), { ...FAST, timeoutMs: 50 })
  await send(call, { url: hook.url })
  await hook.untilEnd()
  expect(hook.got[1]?.body).toEqual(hook.got[0]?.body)
})

test('the webhook is told also when the client has left in the middle', async () => {
  const hook = await webhook()
  const { opened, open } = gate()
  const { url } = await start(patient(opened))
  const leaving = new AbortController()
  const response = await fetch(`${url}/a2a`, {
    method: 'POST',
    signal: leaving.signal,
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'SendStreamingMessage',
      params: { message: message(), configuration: { taskPushNotificationConfig: { url: hook.url } } },
    }),
  })
  await response.body?.getReader().read()
  leaving.abort()
  open()
  await hook.untilEnd()
  expect(stateOf(hook.got.at(-1)?.body)).toBe('completed')
})

verifies('a2a-1.0.push-delete', 'after its deletion a config gets nothing more, also not what waited', async () => {
  const { opened, open } = gate()
  const hook = await webhook(async () => {
    await opened
    return 200
  })
  const other = await webhook()
  const task = gate()
  const { call } = await start(patient(task.opened))
  const { result } = await send(call, { id: 'first', url: hook.url }, { returnImmediately: true })
  const taskId = result.task.id
  await call('CreateTaskPushNotificationConfig', { taskId, id: 'second', url: other.url })
  await hook.until(() => hook.got.length === 1)
  expect((await call('DeleteTaskPushNotificationConfig', { taskId, id: 'first' })).error).toBeUndefined()
  task.open()
  await other.untilEnd()
  open()
  expect(hook.got).toHaveLength(1)
})

test('what has not been delivered when the server shuts down is dropped, and that is logged', async () => {
  const hook = await webhook(() => undefined)
  const server = await start()
  await send(server.call, { url: hook.url })
  await hook.until(() => hook.got.length === 1)
  await server.close({ graceMs: 0 })
  const lines = server.logged.filter(({ message }) => message.includes('dropped'))
  expect(lines).toEqual([
    { level: 'warn', message: 'Push notifications were dropped, as the server shuts down', fields: { lost: expect.any(Number) } },
  ])
})

test('a large task on its way to webhooks is held memory, and is not kept while a webhook rests', async () => {
  const large = (count: number): boolean => count > 1_000_000
  const late = gate()
  const hook = await webhook(async ({ headers }) => {
    if (!large(Number(headers['content-length']))) return 200
    await late.opened
    return 503
  })
  const agent = defineAgent('large', async function* () {
    yield { type: 'response.delta', delta: { type: 'text', text: 'x'.repeat(2_000_000) } }
  })
  const { call, url } = await start(agent, { firstPauseMs: 60_000, longestPauseMs: 60_000 })
  for (let n = 0; n < 3; n++) await send(call, { url: `${hook.url}/${n}` })
  await hook.until(() => hook.got.filter(({ headers }) => large(Number(headers['content-length']))).length === 3)
  expect(await heldBytes(url)).toBeGreaterThan(6_000_000)
  late.open()
  await expect.poll(() => heldBytes(url), POLL).toBeLessThan(1_000_000)
})
