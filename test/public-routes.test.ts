import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as netConnect } from 'node:net'
import { expect, test } from 'vitest'
import { demo } from '../src/agents/demo/index.ts'
import { startServer } from './support/server.ts'

const tokens = { alice: 'wonderland-0123456789abcdef' }
/** What is told on the page about routes that need no token. */
const page = readFileSync(new URL('../docs/server.md', import.meta.url), 'utf8')
const section = page.slice(page.indexOf('### Without a token'), page.indexOf('##', page.indexOf('### Without a token') + 4))

async function routesOf(url: string): Promise<readonly (readonly [method: string, path: string])[]> {
  const { routes } = (await (await fetch(url)).json()) as { routes: string[] }
  return routes.map((line) => {
    const [method = '', path = ''] = line.split(' ')
    return [method, path] as const
  })
}

/** The status of a request that announces a body, and never sends it. */
async function statusOf(port: number, [method, path]: readonly [string, string]): Promise<number> {
  const client = netConnect(port, '127.0.0.1')
  const upgrade = 'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=='
  const body = 'content-type: application/json\r\ncontent-length: 1000000'
  const more = method === 'WS' ? upgrade : method === 'GET' ? 'accept: */*' : body
  const target = path.replaceAll(/:\w+(\{[^}]*\})?/g, 'x')
  client.write(`${method === 'WS' ? 'GET' : method} ${target} HTTP/1.1\r\nhost: localhost\r\n${more}\r\n\r\n`)
  const [head] = (await once(client, 'data')) as [Buffer]
  client.destroy()
  return Number(String(head).split(' ')[1])
}

test('every route asks for a token before it reads anything, but for those that the guide names', async () => {
  const { url, port } = await startServer(demo(), { tokens })
  const routes = await routesOf(url)
  expect(routes.length).toBeGreaterThan(60)
  for (const route of routes) {
    const named = section.includes(`\`${route[0] === 'WS' ? 'WS ' : ''}${route[1]}\``)
    const status = await statusOf(port, route)
    expect([...route, status === 401]).toEqual([...route, !named])
  }
})
