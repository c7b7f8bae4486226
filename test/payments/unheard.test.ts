/** What is refused for want of money is not told in another way, and what was paid is told. */
import { expect, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import type { Store } from '../../src/core/ports/store.ts'
import type { Transport } from '../../src/core/ports/transport.ts'
import { DATA, startPaid } from '../support/paying.ts'

/** Tells what it used when it has said everything, which is more than its reserve. */
const metered = defineAgent(
  'metered',
  async function* () {
    yield 'The whole answer.'
    yield { type: 'usage.delta', delta: { output_tokens: 30_000 } }
  },
  { price: { output: '10' } },
)
const once = defineAgent(
  'once',
  async function* () {
    yield 'An answer.'
  },
  { price: { call: '0.01' } },
)

interface Listed {
  readonly data: readonly object[]
}
interface Completion {
  readonly choices: readonly { readonly message: { readonly content: string } }[]
}

async function ask(url: string, path: string, { body, token }: { readonly body?: object; readonly token?: string } = {}) {
  const response = await fetch(url + path, {
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
    headers: { 'content-type': 'application/json', ...(token !== undefined && { 'x-payment': token }) },
  })
  return { status: response.status, text: await response.text() }
}

test.each(DATA)('a stored completion that was refused for want of money is not found among the stored ones [%s]', async (data) => {
  const server = await startPaid(metered, data)
  const token = await server.token('0.01')
  const body = { model: 'metered', store: true, messages: [{ role: 'user', content: 'Go' }] }
  expect((await ask(server.url, '/v1/chat/completions', { body, token: token.text })).status).toBe(402)
  expect(await token.left()).toBe(10_000_000n)
  const { text } = await ask(server.url, '/v1/chat/completions')
  expect((JSON.parse(text) as Listed).data).toEqual([])
})

test('a refused answer is not in the conversation that it would have gone on with', async () => {
  let store: Store | undefined
  const watch: Transport = { name: 'watch', serves: 'all', routes: (host) => ((store = host.store), []) }
  const server = await startPaid([metered, once], 'sqlite', { transports: [watch] })
  const [rich, poor] = [await server.token('1'), await server.token('0.01')]
  const path = '/v1/responses'
  const first = await ask(server.url, path, { body: { model: 'once', input: 'Hi' }, token: rich.text })
  const { id } = JSON.parse(first.text) as { id: string }
  const body = { model: 'metered', input: 'Go', previous_response_id: id }
  expect((await ask(server.url, path, { body, token: poor.text })).status).toBe(402)
  const found: string[] = []
  for await (const { key, type } of store?.scan() ?? []) {
    if (type === 'record') found.push(JSON.stringify((await store?.get(key))?.value))
  }
  expect(found.filter((each) => each.includes('An answer.'))).not.toEqual([])
  expect(found.filter((each) => each.includes('The whole answer.'))).toEqual([])
})

test.each([false, true])(
  'of two choices of which one is paid, that one is told, and the other is not charged [stream: %s]',
  async (stream) => {
    const server = await startPaid(once)
    const token = await server.token('0.015')
    const body = { model: 'once', n: 2, stream, messages: [{ role: 'user', content: 'Go' }] }
    const { status, text } = await ask(server.url, '/v1/chat/completions', { body, token: token.text })
    expect(status).toBe(200)
    expect(await token.left()).toBe(5_000_000n)
    expect(text.match(/An answer\./g)).toHaveLength(1)
    if (!stream) expect((JSON.parse(text) as Completion).choices).toHaveLength(1)
  },
)
