import { once } from 'node:events'
import { expect, test } from 'vitest'
import { testServer } from '../../../test/support/test-server.ts'
import { UampError } from '../../protocol/errors.ts'

test('counts requests by route, sockets, sessions, events, errors and the time to the first delta', async () => {
  const { url, connect, metrics } = await testServer({
    routes: [
      { method: 'GET', path: '/items/:id', access: 'request', handle: async () => new Response('ok') },
      { method: 'GET', path: '/fail', access: 'request', handle: () => Promise.reject(new UampError('provider_error', 'no')) },
      {
        method: 'WS',
        path: '/ws',
        access: 'request',
        handle: async (socket) => {
          for await (const _ of socket) void _
        },
      },
    ],
  })
  for (const path of ['/items/1', '/items/2', '/fail', '/nowhere']) await fetch(url + path)
  await fetch(`${url}/items/1`, { method: 'PROPFIND' })
  metrics.countEvents('test', 500)
  metrics.observeFirstDelta('test', 20)
  const client = connect('/ws')
  await once(client, 'open')
  const scrape = async () => (await fetch(`${url}/metrics`)).text()
  const text = await scrape()
  for (const line of [
    'uamp_http_requests_total{transport="test",route="/items/:id",method="GET",status="200"} 2',
    'uamp_http_requests_total{transport="test",route="/fail",method="GET",status="502"} 1',
    'uamp_http_requests_total{transport="",route="",method="other",status="404"} 1',
    'uamp_http_requests_total{transport="",route="",method="other",status="405"} 1',
    'uamp_errors_total{transport="test",code="provider_error"} 1',
    'uamp_events_total{transport="test"} 500',
    'uamp_first_delta_seconds_bucket{le="0.025",transport="test"} 1',
    'uamp_first_delta_seconds_sum{transport="test"} 0.02',
    'uamp_open_sockets 1',
    'uamp_open_sessions 0',
    'uamp_open_responses 0',
    'uamp_held_bytes 0',
  ]) {
    expect(text).toContain(`${line}\n`)
  }
  for (let i = 0; i < 2500; i++) metrics.observeFirstDelta('test', 1)
  expect(await scrape()).toContain('uamp_first_delta_seconds_count{transport="test"} 2501\n')
})

test('an agent that invents codes does not make the page longer without end', async () => {
  const { url, metrics } = await testServer()
  for (let i = 0; i < 1000; i++) metrics.countError('test', `code_${i}`)
  const text = await (await fetch(`${url}/metrics`)).text()
  expect(text.match(/uamp_errors_total\{/g)).toHaveLength(65)
  expect(text).toContain('uamp_errors_total{transport="test",code="other"} 936\n')
})

test('two servers in one process count for themselves', async () => {
  const [one, two] = [await testServer(), await testServer()]
  one.metrics.countEvents('test', 1)
  expect(await (await fetch(`${one.url}/metrics`)).text()).toContain('uamp_events_total{transport="test"} 1')
  expect(await (await fetch(`${two.url}/metrics`)).text()).not.toContain('uamp_events_total{')
})
