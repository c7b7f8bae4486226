import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { storeKey } from '../../src/core/basics/store-key.ts'
import { isRecord } from '../../src/protocol/json.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { folder, found, idIn, oneOh, rows, rpc, sealedIn, secret, short, start, taskIn } from './at-rest.ts'
import { post } from './raw.ts'

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
  const session = await before.gateway.attach(step.session, { tenant: 'default', id: 'anonymous', scopes: ['*'] })
  await session?.send({ type: 'payment.submit', event_id: 'pay-1', payment: { scheme: 'token', token } })
  expect(found(data, [token])).toEqual([])
  expect(await sealedIn(before, data)).toBe(1)
  const again = await start(data)
  const back = await again.gateway.attach(step.session, { tenant: 'default', id: 'anonymous', scopes: ['*'] })
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
      index: [[storeKey('default', 'turns', session), turn]],
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
  await expect(start(data)).rejects.toThrow(/were sealed with the key \w+, but there is no uamp\.key/)
  expect(existsSync(path)).toBe(false)
  writeFileSync(path, key, { mode: 0o600 })
  await (await start(data)).close()
})

test('a key of the environment is used instead of a file, and is needed again', async () => {
  const data = folder()
  process.env['UAMP_KEY'] = Buffer.alloc(32, 9).toString('base64')
  onTestFinished(() => void delete process.env['UAMP_KEY'])
  await (await start(data)).close()
  expect(existsSync(join(data, 'uamp.key'))).toBe(false)
  await (await start(data)).close()
  delete process.env['UAMP_KEY']
  await expect(start(data)).rejects.toThrow(/were sealed with the key/)
})
