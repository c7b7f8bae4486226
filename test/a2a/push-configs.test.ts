import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { ServeOptions } from '../../src/serve/index.ts'
import { a2a } from '../../src/transports/a2a/index.ts'
import { startServer } from '../support/server.ts'
import { testServer } from '../support/test-server.ts'
import { verifies } from '../support/verifies.ts'
import { caller, message, patient, type Wire } from './push-support.ts'

const CREATE = 'CreateTaskPushNotificationConfig'
const GET = 'GetTaskPushNotificationConfig'
const LIST = 'ListTaskPushNotificationConfigs'
const DELETE = 'DeleteTaskPushNotificationConfig'
const URL_OUTSIDE = 'https://hooks.example.com/a'
const TOKENS = { alice: 'secret-a-0123456789abcdef', bob: 'secret-b-0123456789abcdef' }

async function start(options: Partial<ServeOptions> = {}) {
  const server = await startServer(patient(), { tokens: TOKENS, ...options })
  const alice = caller(server.url, TOKENS.alice)
  return { ...server, alice, bob: caller(server.url, TOKENS.bob), taskId: await newTask(alice) }
}

/** A task that has ended: then nothing is sent, and configs stay. */
async function newTask(call: ReturnType<typeof caller>): Promise<string> {
  return (await call('SendMessage', { message: message() })).result.task.id
}

verifies(['a2a-1.0.push-create', 'a2a-1.0.push-get'], 'a config gets an id, and is given back as it was set', async () => {
  const { alice, taskId } = await start()
  const config = { taskId, url: URL_OUTSIDE, token: 't', authentication: { scheme: 'Bearer', credentials: 'c' } }
  const first = (await alice(CREATE, config)).result
  expect(first).toEqual({ ...config, id: expect.stringMatching(/\S/) })
  const second = (await alice(CREATE, { taskId, url: URL_OUTSIDE })).result
  expect(second.id).not.toBe(first.id)
  expect((await alice(GET, { taskId, id: first.id })).result).toEqual(first)

  const changed = (await alice(CREATE, { taskId, id: first.id, url: 'https://hooks.example.com/b' })).result
  expect((await alice(GET, { taskId, id: first.id })).result).toEqual(changed)
  expect((await alice(LIST, { taskId })).result.configs).toEqual([changed, second])
  expect((await alice(GET, { taskId, id: 'none' })).error.code).toBe(-32001)
})

verifies('a2a-1.0.push-list', 'all are listed, in pages, and a page that does not exist is refused', async () => {
  const { alice, taskId } = await start()
  for (const id of ['a', 'b', 'c', 'd', 'e']) await alice(CREATE, { taskId, id, url: URL_OUTSIDE })
  const ids: string[][] = []
  for (let pageToken = ''; ;) {
    const { configs, nextPageToken } = (await alice(LIST, { taskId, pageSize: 2, pageToken })).result
    ids.push(configs.map(({ id }: Wire) => id))
    if (!nextPageToken) break
    pageToken = nextPageToken
  }
  expect(ids).toEqual([['a', 'b'], ['c', 'd'], ['e']])
  expect((await alice(LIST, { taskId })).result.configs).toHaveLength(5)
  for (const wrong of [{ pageToken: 'zzz' }, { pageSize: -1 }, { pageSize: 1000 }]) {
    expect((await alice(LIST, { taskId, ...wrong })).error.code, JSON.stringify(wrong)).toBe(-32602)
  }
})

verifies('a2a-1.0.push-delete', 'a config can be deleted again and again', async () => {
  const { alice, taskId } = await start()
  await alice(CREATE, { taskId, id: 'a', url: URL_OUTSIDE })
  for (let time = 0; time < 3; time++) expect((await alice(DELETE, { taskId, id: 'a' })).error).toBeUndefined()
  expect((await alice(GET, { taskId, id: 'a' })).error.code).toBe(-32001)
})

verifies('a2a-1.0.push-get', 'what is on the task of another is not found, and cannot be touched', async () => {
  const { alice, bob, taskId } = await start()
  await alice(CREATE, { taskId, id: 'a', url: URL_OUTSIDE })
  const tries = [
    [CREATE, { taskId, id: 'b', url: URL_OUTSIDE }],
    [GET, { taskId, id: 'a' }],
    [LIST, { taskId }],
    [DELETE, { taskId, id: 'a' }],
    ['tasks/pushNotificationConfig/set', { taskId, pushNotificationConfig: { url: URL_OUTSIDE } }],
    ['tasks/pushNotificationConfig/get', { id: taskId }],
    ['tasks/pushNotificationConfig/list', { id: taskId }],
    ['tasks/pushNotificationConfig/delete', { id: taskId, pushNotificationConfigId: 'a' }],
  ] as const
  for (const [method, params] of tries) expect((await bob(method, params)).error.code, method).toBe(-32001)
  for (const [method, params] of tries.slice(0, 4))
    expect((await alice(method, { ...params, taskId: 'none' })).error.code, method).toBe(-32001)
  expect((await alice(LIST, { taskId })).result.configs.map(({ id }: Wire) => id)).toEqual(['a'])
})

test('before 1.0 a task has "the" config, which is replaced when it is set again', async () => {
  const { alice, taskId } = await start()
  for (const url of [URL_OUTSIDE, 'https://hooks.example.com/b']) {
    const { result } = await alice('tasks/pushNotificationConfig/set', { taskId, pushNotificationConfig: { url } })
    expect(result).toMatchObject({ taskId, pushNotificationConfig: { url } })
  }
  expect((await alice('tasks/pushNotificationConfig/get', { id: taskId })).result.pushNotificationConfig.url).toBe(
    'https://hooks.example.com/b',
  )
  expect((await alice(LIST, { taskId })).result.configs).toHaveLength(1)
})

verifies(
  'a2a-1.0.push-ssrf',
  'a webhook that is not on the public internet is refused when it is set, by every generation, and no task is begun',
  async () => {
    const { alice, taskId } = await start()
    const before = (await alice('ListTasks', {})).result.totalSize
    for (const url of [
      'https://hooks.example.com/a\r\nX-Injected: 1',
      'https://hooks.exa\nmple.com/a',
      'https://alice:secret@hooks.example.com/a',
      'http://127.0.0.1/hook',
      'https://127.0.0.1/hook',
      'https://2130706433/hook',
      'https://0x7f.1/hook',
      'https://[::ffff:127.0.0.1]/hook',
      'https://localhost./hook',
      'https://169.254.169.254/latest/meta-data',
      'https://10.0.0.1/',
      'http://hooks.example.com/not-https',
      'https://user:pass@hooks.example.com/',
      'file:///etc/passwd',
      'gopher://hooks.example.com',
      'hooks.example.com',
      '',
    ]) {
      const answers = [
        await alice(CREATE, { taskId, url }),
        await alice('SendMessage', { message: message(), configuration: { taskPushNotificationConfig: { url } } }),
        await alice('tasks/pushNotificationConfig/set', { taskId, pushNotificationConfig: { url } }),
        await alice('message/send', {
          message: { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'x' }] },
          configuration: { pushNotificationConfig: { url } },
        }),
      ]
      for (const { error } of answers) expect([url, error?.code]).toEqual([url, -32602])
    }
    expect((await alice(LIST, { taskId })).result.configs ?? []).toEqual([])
    expect((await alice('ListTasks', {})).result.totalSize).toBe(before)
  },
)

test('what cannot stand in a header is refused, and not repeated to anybody', async () => {
  const { alice, taskId, logged } = await start()
  const bad = [
    { token: 'hidden\r\nX-Evil: 1' },
    { token: 'hidden\n' },
    { token: 'hidden\u0000' },
    { token: 'hiddenä' },
    { authentication: { scheme: 'Bearer', credentials: 'hidden\r\nHost: evil' } },
    { authentication: { scheme: 'Bearer\r\nX: hidden', credentials: 'c' } },
    { authentication: { scheme: 'Two words', credentials: 'hidden' } },
    { token: 'hidden'.repeat(2_000) },
    { id: 'x'.repeat(300) },
    { url: `${URL_OUTSIDE}?${'x'.repeat(9_000)}` },
  ]
  for (const config of bad) {
    const { error } = await alice(CREATE, { taskId, url: URL_OUTSIDE, ...config })
    expect([JSON.stringify(config).slice(0, 60), error?.code]).toEqual([JSON.stringify(config).slice(0, 60), -32602])
    expect(JSON.stringify(error)).not.toContain('hidden')
  }
  expect(JSON.stringify(logged)).not.toContain('hidden')
})

test('of a thousand configs twenty are taken, and the others are told why not', async () => {
  const { alice, taskId } = await start()
  const answers: Wire[] = []
  const one = async () => void answers.push(await alice(CREATE, { taskId, url: URL_OUTSIDE }))
  for (let wave = 0; wave < 20; wave++) await Promise.all(Array.from({ length: 50 }, one))
  expect(answers.filter(({ result }) => result !== undefined)).toHaveLength(20)
  for (const { error } of answers.filter(({ result }) => result === undefined)) {
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('20 push notification configs') })
  }
  expect((await alice(LIST, { taskId })).result.configs).toHaveLength(20)
})

verifies('a2a-1.0.push-create', 'configs outlive the server', async () => {
  const data = await mkdtemp(join(tmpdir(), 'uamp-push-'))
  onTestFinished(() => rm(data, { recursive: true, force: true }))
  const first = await start({ data })
  const { result } = await first.alice(CREATE, { taskId: first.taskId, url: URL_OUTSIDE, token: 't' })
  await first.close({ graceMs: 0 })
  const second = await startServer(patient(), { tokens: TOKENS, data })
  expect((await caller(second.url, TOKENS.alice)(GET, { taskId: first.taskId, id: result.id })).result).toEqual(result)
})

verifies('a2a-1.0.push-unsupported', 'a server that cannot call out says so, in the card and to whoever tries', async () => {
  const { url } = await testServer({ agents: [patient()], transports: [a2a()] })
  const call = caller(url)
  const card: Wire = await (await fetch(`${url}/.well-known/agent-card.json`)).json()
  expect(card.capabilities.pushNotifications).toBe(false)
  const taskId = await newTask(call)
  const tries = [
    [CREATE, { taskId, url: URL_OUTSIDE }],
    [GET, { taskId, id: 'a' }],
    [LIST, { taskId }],
    [DELETE, { taskId, id: 'a' }],
    ['SendMessage', { message: message(), configuration: { taskPushNotificationConfig: { url: URL_OUTSIDE } } }],
    ['tasks/pushNotificationConfig/set', { taskId, pushNotificationConfig: { url: URL_OUTSIDE } }],
  ] as const
  for (const [method, params] of tries) expect((await call(method, params)).error?.code, method).toBe(-32003)
})
