import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { startChild } from '../support/child.ts'
import { startServer } from '../support/server.ts'
import { caller, message, stateOf, webhook, type Wire } from './push-support.ts'

const SOURCE = fileURLToPath(new URL('push-server.ts', import.meta.url))
/** Where packages are found from. */
const SERVER = fileURLToPath(new URL(`../../node_modules/.cache/uamp-push-server-${process.pid}.mjs`, import.meta.url))

beforeAll(() => build({ entryPoints: [SOURCE], outfile: SERVER, bundle: true, packages: 'external', format: 'esm', platform: 'node' }))
afterAll(() => rmSync(SERVER, { force: true }))

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'uamp-test-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

async function start(data: string) {
  const { url, kill } = await startChild(data, { program: [SERVER, data] })
  return { call: caller(url), kill }
}

/** A whole task with a webhook of its own: what was delivered before it has been written down when it ends. */
async function tellAnother({ call }: { readonly call: ReturnType<typeof caller> }): Promise<void> {
  const other = await webhook()
  await call('SendMessage', { message: message('x'), configuration: { taskPushNotificationConfig: { url: other.url } } })
  await other.untilEnd()
}

const LONG = '/count 100000 1'
const old = (text: string) => ({
  kind: 'message',
  messageId: crypto.randomUUID(),
  role: 'user',
  parts: [{ kind: 'text', type: 'text', text }],
})

/** How each generation starts a task that takes long and tells a webhook. */
const GENERATIONS: readonly [string, (call: ReturnType<typeof caller>, url: string) => Promise<Wire>][] = [
  [
    '1.0',
    (call, url) =>
      call('SendMessage', { message: message(LONG), configuration: { returnImmediately: true, taskPushNotificationConfig: { url } } }),
  ],
  [
    '1.0, set later',
    async (call, url) => {
      const { result } = await call('SendMessage', { message: message(LONG), configuration: { returnImmediately: true } })
      return call('CreateTaskPushNotificationConfig', { taskId: result.task.id, url })
    },
  ],
  ['0.3', (call, url) => call('message/send', { message: old(LONG), configuration: { blocking: false, pushNotificationConfig: { url } } })],
  [
    '0.3, set later',
    async (call, url) => {
      const { result } = await call('message/send', { message: old(LONG), configuration: { blocking: false } })
      return call('tasks/pushNotificationConfig/set', { taskId: result.id, pushNotificationConfig: { url } })
    },
  ],
  ['0.1', (call, url) => call('tasks/send', { id: crypto.randomUUID(), message: old(LONG), pushNotification: { url } })],
]

type Hook = Awaited<ReturnType<typeof webhook>>

const statesOf = (hook: Hook) => hook.got.map(({ body }) => stateOf(body)).filter(Boolean)
const times = (hook: Hook, state: string) => statesOf(hook).filter((each) => each === state).length

/** Begins a task of 1.0 that tells this webhook. */
const tell = (call: ReturnType<typeof caller>, hook: Hook, words: string) =>
  call('SendMessage', {
    message: message(words),
    configuration: { returnImmediately: true, taskPushNotificationConfig: { url: hook.url } },
  })

// One server for all of it, as each start takes long.
test('webhooks learn how their tasks ended when the server was killed, once they can be told', async () => {
  const data = folder()
  const hooks = await Promise.all(GENERATIONS.map(() => webhook()))
  const [second, deaf, asked] = [await webhook(), await webhook(() => (hears ? 200 : undefined)), await webhook()]
  // Takes the request, and does not answer it before the last start.
  const slow = await webhook(({ body }) => (stateOf(body) === 'failed' && !hears ? undefined : 200))
  let hears = false

  const first = await start(data)
  const begun = GENERATIONS.map(([, begin], index) => begin(first.call, (hooks[index] as Hook).url))
  // One generation waits for the end, which does not come.
  for (const each of begun) each.catch(() => undefined)
  const { result } = await begun[0]
  await first.call('CreateTaskPushNotificationConfig', { taskId: result.task.id, url: second.url })
  await tell(first.call, slow, LONG)
  await tell(first.call, deaf, 'Hello')
  const waiting = await tell(first.call, asked, '/approve x')
  await asked.until(() => times(asked, 'input-required') === 1)
  // One that is set later is told nothing before the end.
  const early = hooks.filter((_, index) => !GENERATIONS[index]?.[0].endsWith('later'))
  await Promise.all([slow, ...early].map((hook) => hook.until(() => hook.got.length > 0)))
  await Promise.all(begun.filter((_, index) => GENERATIONS[index]?.[0].endsWith('later')))
  await tellAnother(first)
  await first.kill()
  deaf.got.length = 0

  // Nobody calls it, and it is killed while it tells of the ends.
  const again = await start(data)
  await Promise.all([second, slow, ...hooks].map((hook) => hook.until(() => times(hook, 'failed') === 1)))
  for (const [index, hook] of hooks.entries()) {
    const { body } = hook.got.at(-1) as { body: Wire }
    expect(JSON.stringify((body.statusUpdate ?? body).status.message)).toContain('Interrupted')
    if (index > 1) expect(JSON.stringify(body.artifacts)).toContain('1 2 3')
  }
  await tellAnother(again)
  await again.kill()
  hears = true
  deaf.got.length = 0

  const third = await start(data)
  await slow.until(() => times(slow, 'failed') === 2)
  await deaf.untilEnd()
  expect(deaf.got.flatMap(({ body }) => body.artifactUpdate?.artifact.parts[0].text ?? [])).toEqual(['You said: Hello'])
  expect(statesOf(deaf)).toEqual(['completed'])
  await third.call('SendMessage', { message: { ...message('yes'), taskId: waiting.result.task.id } })
  await asked.untilEnd()
  // What was told is not told again.
  expect(times(asked, 'input-required')).toBe(1)
  expect([second, ...hooks].map((hook) => times(hook, 'failed'))).toEqual([second, ...hooks].map(() => 1))
}, 90_000)

test('a webhook that is set after the end of its task, or deleted, is owed nothing', async () => {
  const data = folder()
  const hook = await webhook()
  const options = { data, outbound: { allow: ['127.0.0.1'] } }
  const first = await startServer(demo(), options)
  const call = caller(first.url)
  const done = await call('SendMessage', { message: message('Hello') })
  await call('CreateTaskPushNotificationConfig', { taskId: done.result.task.id, url: hook.url })
  const waits = await call('SendMessage', { message: message('/approve x') })
  const taskId = waits.result.task.id
  const config = await call('CreateTaskPushNotificationConfig', { taskId, url: hook.url })
  await call('DeleteTaskPushNotificationConfig', { taskId, id: config.result.id })
  await first.close({ graceMs: 0 })
  const { url } = await startServer(demo(), options)
  await tellAnother({ call: caller(url) })
  expect(hook.got).toEqual([])
})
