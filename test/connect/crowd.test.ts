/** One caller who offers an agent again and again takes no more room than a few. */
import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { bareEnd } from './bare.ts'
import { LAPTOP, startHost } from './hosts.ts'

const MOST = 256

test('processes of one agent are counted, however many sessions and sockets they come over', async () => {
  const { url } = await startHost([demo()], { hosting: 'share', defaultAgent: 'demo' })
  const first = await bareEnd(url)
  const offer = (instance: string) => ({
    session: { agent: 'counter', token: LAPTOP, extensions: { uamp: { connect: { version: 1, instance } } } },
  })
  for (let at = 0; at < MOST; at++) {
    expect(await first.offer('counter', LAPTOP, offer(`process ${at}`))).toMatchObject({ type: 'session.created' })
  }
  const refusal = { type: 'session.error', error: { code: 'rate_limited', details: { limit: MOST } } }
  expect(await first.offer('counter', LAPTOP, offer('one more'))).toMatchObject(refusal)
  const second = await bareEnd(url)
  expect(await second.offer('counter', LAPTOP, offer('one more'))).toMatchObject(refusal)
  // One that is known comes back, and other names are free.
  expect(await second.offer('counter', LAPTOP, offer('process 7'))).toMatchObject({ type: 'session.created' })
  expect(await second.offer('mirror', LAPTOP)).toMatchObject({ type: 'session.created' })
})
