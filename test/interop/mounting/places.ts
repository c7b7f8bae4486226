import { getRequestListener } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { onTestFinished } from 'vitest'
import { listening, type Mounting } from './mounted.ts'

/** A server that somebody has, with agents below `/ai`. Gives its address. */
type Place = (agents: Mounting) => Promise<string>

export interface Placed {
  readonly place: Place
  /** Whether WebSockets reach the agents there. */
  readonly upgrades: boolean
}

function expressPlace(...before: readonly ReturnType<typeof express.json>[]): Place {
  return ({ handleRequest, handleUpgrade }) => {
    const site = express()
    site.get('/shop', (_, response) => void response.send('the shop'))
    for (const middleware of before) site.use(middleware)
    site.use('/ai', handleRequest)
    return listening(site, handleUpgrade)
  }
}

async function fastifyPlace({ handleRequest, handleUpgrade }: Mounting): Promise<string> {
  const site = fastify()
  site.get('/shop', () => 'the shop')
  await site.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
    scope.all('/ai/*', async (request, reply) => {
      reply.hijack()
      await handleRequest(request.raw, reply.raw)
    })
  })
  site.server.on('upgrade', handleUpgrade)
  onTestFinished(() => {
    site.server.closeAllConnections()
    return site.close()
  })
  return site.listen({ port: 0, host: '127.0.0.1' })
}

function honoPlace(mount: (site: Hono, agents: Mounting) => unknown): Place {
  return (agents) => {
    const site = new Hono()
    site.get('/shop', (c) => c.text('the shop'))
    mount(site, agents)
    site.get('*', (c) => c.text('a page of the site', 404))
    return listening(getRequestListener(site.fetch), agents.handleUpgrade)
  }
}

/** `app/ai/[...path]/route.ts` of Next: it hands over web requests, and keeps Node's to itself. */
function routeHandlers({ fetch }: Mounting): Promise<string> {
  const [GET, POST] = [fetch, fetch]
  const handlers: Partial<Record<string, (request: Request, context: object) => Response | Promise<Response>>> = { GET, POST }
  return listening(
    getRequestListener((request) => {
      if (request.url.endsWith('/shop')) return new Response('the shop')
      return handlers[request.method]?.(request, { params: Promise.resolve({ path: [] }) }) ?? new Response(null, { status: 405 })
    }),
  )
}

export const PLACES: Readonly<Record<string, Placed>> = {
  'node:http': {
    upgrades: true,
    place: ({ handleRequest, handleUpgrade }) =>
      listening((request, response) => {
        if (request.url === '/shop') response.end('the shop')
        else void handleRequest(request, response)
      }, handleUpgrade),
  },
  Express: { upgrades: true, place: expressPlace() },
  'Express, after its body parsers': { upgrades: true, place: expressPlace(express.json(), express.urlencoded()) },
  'Express, by a pattern': {
    upgrades: true,
    place: ({ handleRequest, handleUpgrade }) => {
      const site = express()
      site.get('/shop', (_, response) => void response.send('the shop'))
      site.all('/ai/{*path}', handleRequest)
      return listening(site, handleUpgrade)
    },
  },
  'Express, after a parser of bytes': { upgrades: true, place: expressPlace(express.raw({ type: () => true })) },
  'Express, after a parser of text': { upgrades: true, place: expressPlace(express.text({ type: () => true })) },
  Fastify: { upgrades: true, place: fastifyPlace },
  'Hono, route': { upgrades: true, place: honoPlace((site, { app }) => site.route('/ai', app)) },
  'Hono, mount': { upgrades: true, place: honoPlace((site, { fetch }) => site.mount('/ai', fetch)) },
  'Hono, mount with the whole path': {
    upgrades: true,
    place: honoPlace((site, { fetch }) => site.mount('/ai', fetch, { replaceRequest: false })),
  },
  'Next-style route handlers': { upgrades: false, place: routeHandlers },
}
