import type { IncomingHttpHeaders } from 'node:http'
import { describe, expect, test } from 'vitest'
import { remoteA2a, type RemoteA2aOptions } from '../../src/remotes/a2a/index.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { overWebSocket } from '../support/wire.ts'
import { chunk, peer, streams } from './a2a/peer.ts'
import { v1JsonRpc } from './a2a/v1.ts'

const HELLO = streams({ task: 'working' }, chunk('Hello', false), { status: 'completed' })
const SECRETS = { token: 'the-token', headers: { 'x-api-key': 'the-key' } }

/** What somebody is told by an agent whose card is at this address. */
async function answer(options: Omit<RemoteA2aOptions, 'name'>, allow: readonly string[] = []): Promise<string> {
  const here = await startServer(remoteA2a({ name: 'far', ...options }), { outbound: { allow } })
  const client = await overWebSocket(here.url)
  await client.open()
  const events = await say(client, 'hi')
  client.close()
  return textOf(events) || events.at(-1)?.['error'].message
}

/** An agent, and what came to it. */
async function listening(card?: (url: string) => object) {
  const got: { url: string | undefined; headers: IncomingHttpHeaders }[] = []
  const there = await peer(v1JsonRpc, HELLO, {
    ...(card && { card: (fields, url) => ({ ...fields, ...card(url) }) }),
    other(request) {
      got.push({ url: request.url, headers: request.headers })
      return false
    },
  })
  return { url: there.url, host: new URL(there.url).host, got }
}

const at = (url: string) => ({ supportedInterfaces: [{ url: `${url}/agent`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] })

const secretsIn = ({ headers }: { headers: IncomingHttpHeaders }) => [headers.authorization, headers['x-api-key']]
const SHOWN = ['Bearer the-token', 'the-key']
const NONE = [undefined, undefined]

test('credentials are shown at the origin that was configured', async () => {
  const there = await listening()
  expect(await answer({ url: there.url, ...SECRETS })).toBe('Hello')
  expect(there.got.map(secretsIn)).toEqual(there.got.map(() => SHOWN))
  expect(there.got.length).toBeGreaterThan(1)
})

describe('an address that a card names elsewhere', () => {
  test('is not called where it is on this machine, be it by another port alone', async () => {
    const inside = await listening()
    const there = await listening(() => at(inside.url))
    const told = await answer({ url: there.url, ...SECRETS })
    expect(told).toContain('"far" names no address that may be called')
    expect(told).toContain('127.0.0.1 is not on the public internet')
    expect(inside.got).toEqual([])
  })

  test.each(['localhost', '[::ffff:127.0.0.1]', '2130706433'])('is not called as %s', async (host) => {
    const inside = await listening()
    const there = await listening(() => at(inside.url.replace('127.0.0.1', host)))
    expect(await answer({ url: there.url, ...SECRETS })).toContain('names no address that may be called')
    expect(inside.got).toEqual([])
  })

  test('gets no credentials where it may be called', async () => {
    const other = await listening()
    const there = await listening(() => at(other.url))
    expect(await answer({ url: there.url, ...SECRETS }, [other.host])).toBe('Hello')
    expect(there.got.map(secretsIn)).toEqual([SHOWN])
    expect(other.got.map(secretsIn)).toEqual(other.got.map(() => NONE))
    expect(other.got.length).toBeGreaterThan(0)
  })

  test('nor by another name for the same place, nor by another scheme', async () => {
    const there = await listening((url) => at(url.replace('127.0.0.1', 'localhost')))
    expect(await answer({ url: there.url, ...SECRETS }, ['localhost'])).toBe('Hello')
    expect(there.got.map(secretsIn)).toEqual([SHOWN, NONE])
  })

  test('comes after those of the configured origin', async () => {
    const other = await listening()
    const there = await listening((url) => ({
      supportedInterfaces: [...at(other.url).supportedInterfaces, ...at(url).supportedInterfaces],
    }))
    expect(await answer({ url: there.url, ...SECRETS }, [other.host])).toBe('Hello')
    expect(other.got).toEqual([])
  })
})

test('a redirect is not followed, with or without credentials', async () => {
  const other = await listening()
  const there = await peer(v1JsonRpc, HELLO, {
    other(request, response) {
      if (request.method !== 'POST') return false
      response.writeHead(307, { location: `${other.url}/agent` }).end()
      return true
    },
  })
  expect(await answer({ url: there.url, ...SECRETS }, [other.host])).toContain('307')
  expect(other.got).toEqual([])
})
