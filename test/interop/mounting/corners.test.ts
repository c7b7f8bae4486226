import { getRequestListener } from '@hono/node-server'
import express from 'express'
import { Hono } from 'hono'
import { cors } from 'hono/cors'
import { expect, test } from 'vitest'
import { listening, mounting } from './mounted.ts'

const ASK = JSON.stringify({ model: 'parrot', stream: true, messages: [{ role: 'user', content: 'hello there' }] })

function ask(url: string, headers: Record<string, string> = { 'content-type': 'application/json' }): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body: ASK })
}

test('below /agents, which is a path of ours too, Express gets to the right agent', async () => {
  const { handleRequest } = mounting({ prefix: '/agents' })
  const site = express()
  site.use('/agents', handleRequest)
  const url = await listening(site)
  for (const path of ['/agents', '/agents/agents/parrot']) expect(await (await ask(url + path)).text()).toContain('[DONE]')
  expect((await ask(`${url}/agents/parrot`)).status).toBe(404)
})

test('a path that only begins like the prefix is another', async () => {
  const { handleRequest } = mounting()
  const url = await listening((request, response) => void handleRequest(request, response))
  expect((await ask(`${url}/aim`)).status).toBe(404)
  expect((await fetch(`${url}/ai`)).status).toBe(200)
})

test('routes that were added to the app are below the prefix, too', async () => {
  const { app, handleRequest, fetch: answer } = mounting()
  app.get('/mine/:name', (c) => c.text(`for ${c.req.param('name')}`))
  const site = new Hono().route('/ai', app)
  const urls = [
    await listening((request, response) => void handleRequest(request, response)),
    await listening(getRequestListener(site.fetch)),
    await listening(getRequestListener((request) => answer(request))),
  ]
  for (const url of urls) {
    expect(await (await fetch(`${url}/ai/mine/you`)).text()).toBe('for you')
    expect(await (await ask(`${url}/ai`)).text()).toContain('[DONE]')
  }
})

test('what a middleware of the site adds to an answer is in a stream, too', async () => {
  const { app, fetch: answer, logged } = mounting({ origins: ['https://page.example'] })
  const site = new Hono()
  site.use(async (c, next) => {
    c.header('x-early', 'yes')
    await next()
    c.header('x-late', 'yes')
  })
  site.use(cors({ origin: 'https://page.example' }))
  site.route('/ai', app)
  site.mount('/mounted', answer)
  const url = await listening(getRequestListener(site.fetch))
  for (const path of ['/ai', '/mounted']) {
    const response = await ask(url + path, { 'content-type': 'application/json', origin: 'https://page.example' })
    expect(await response.text()).toContain('[DONE]')
    expect(Object.fromEntries(response.headers)).toMatchObject({ 'x-early': 'yes', 'x-late': 'yes' })
  }
  expect(logged).toEqual([])
})

test('a body that a parser has taken apart for good is refused with the remedy', async () => {
  const { handleRequest, logged } = mounting()
  const site = express()
  site.use(express.urlencoded())
  site.use('/ai', handleRequest)
  const response = await ask(`${await listening(site)}/ai`, { 'content-type': 'application/x-www-form-urlencoded' })
  expect(response.status).toBe(500)
  expect(await response.json()).toMatchObject({ error: { message: expect.stringContaining('mount the agents before it') } })
  expect(logged).toEqual([expect.stringContaining('mount the agents before it')])
})

test('a body that a parser has read counts as any other', async () => {
  const { handleRequest } = mounting({ limits: { bodyBytes: 30_000 } })
  const site = express()
  site.use(express.json({ limit: '1mb' }))
  site.use('/ai', handleRequest)
  const url = await listening(site)
  const body = JSON.stringify({ model: 'parrot', messages: [{ role: 'user', content: 'x'.repeat(40_000) }] })
  const chunked = { duplex: 'half', body: new Blob([body]).stream() } as RequestInit
  for (const init of [{ body }, chunked]) {
    const response = await fetch(`${url}/ai/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      ...init,
    })
    expect(response.status).toBe(413)
  }
})

test('a prefix that is none is refused', () => {
  for (const prefix of ['ai', '/a b', '/a?b', 'https://example.com/ai']) expect(() => mounting({ prefix })).toThrow('write it like /ai')
})
