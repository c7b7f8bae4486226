import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { Provider } from '../../src/core/ports/provider.ts'
import { anthropic } from '../../src/providers/anthropic/index.ts'
import { google } from '../../src/providers/google/index.ts'
import { openaiCompatible } from '../../src/providers/openai-compatible/index.ts'
import { openai } from '../../src/providers/openai/index.ts'
import { ask } from './ask.ts'

/** What a provider asks for when its base URL is this path of a server. */
async function asked(path: string, make: (baseUrl: string) => Provider): Promise<string[]> {
  const urls: string[] = []
  const server = createServer((request, response) => {
    urls.push(request.url ?? '')
    response.writeHead(400).end('{}')
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const provider = make(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`)
  expect((await ask(provider, { model: 'm', messages: 'hi' })).error).toBeDefined()
  return urls
}

test.each<[name: string, path: string, make: (baseUrl: string) => Provider, url: string]>([
  ['openai', '/v1?k=1', (baseUrl) => openai({ apiKey: 'x', baseUrl, retries: 0 }), '/v1/responses?k=1'],
  ['compatible', '/v1/?k=1', (baseUrl) => openaiCompatible({ name: 'c', baseUrl, retries: 0 }), '/v1/chat/completions?k=1'],
  ['anthropic', '/v1?k=/v1', (baseUrl) => anthropic({ apiKey: 'x', baseUrl, retries: 0 }), '/v1/messages?k=/v1'],
  ['google', '?k=1', (baseUrl) => google({ apiKey: 'x', baseUrl, retries: 0 }), '/v1beta/models/m:streamGenerateContent?k=1&alt=sse'],
  ['google', '/v1?k=1', (baseUrl) => google({ apiKey: 'x', baseUrl, retries: 0 }), '/v1/models/m:streamGenerateContent?k=1&alt=sse'],
])('%s keeps the query of a base URL behind the path', async (_, path, make, url) => {
  expect(await asked(path, make)).toEqual([url])
})
