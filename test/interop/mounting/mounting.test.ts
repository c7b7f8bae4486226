import { describe, expect, onTestFinished, test } from 'vitest'
import { connect } from '../../../src/client/node.ts'
import { mounting } from './mounted.ts'
import { PLACES } from './places.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

function post(url: string, body: unknown, headers: Record<string, string> = JSON_TYPE): Promise<Response> {
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
}

function completion(content: string, stream = false) {
  return { model: 'parrot', stream, messages: [{ role: 'user', content }] }
}

/** An answer as text, without waiting for its end. */
async function readUntil(response: Response, wanted: string): Promise<{ soFar: string; rest: () => Promise<string> }> {
  const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream() as never).getReader()
  let soFar = ''
  const next = async (): Promise<boolean> => {
    const { done, value } = (await reader.read()) as { done: boolean; value: string }
    soFar += value ?? ''
    return !done
  }
  while (!soFar.includes(wanted) && (await next()));
  return {
    soFar,
    rest: async () => {
      while (await next());
      return soFar
    },
  }
}

describe.each(Object.entries(PLACES))('%s', (_, { place, upgrades }) => {
  test('answers below its prefix, and leaves the rest of the site alone', async () => {
    const agents = mounting()
    const url = await place(agents)
    const response = await post(`${url}/ai/v1/chat/completions`, completion('hello there'))
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: 'hello there' } }] })
    expect(await (await fetch(`${url}/shop`)).text()).toBe('the shop')
    expect((await fetch(`${url}/ai/agents/parrot/v1/models`)).status).toBe(200)
    expect(agents.logged).toEqual([])
  })

  test('takes bodies of every kind and size', async () => {
    const url = await place(mounting())
    const long = `long ${'é'.repeat(40_000)}`
    expect(await (await post(`${url}/ai/v1/chat/completions`, completion(long))).json()).toMatchObject({
      choices: [{ message: { content: long } }],
    })
    // As curl sends it: the type is wrong, and the body is JSON.
    const curl = { 'content-type': 'application/x-www-form-urlencoded' }
    const asForm = await post(`${url}/ai/v1/chat/completions`, completion('from a shell'), curl)
    if (asForm.status === 200) expect(await asForm.json()).toMatchObject({ choices: [{ message: { content: 'from a shell' } }] })
    else expect(await asForm.text()).toContain('before')
    const chunked = new Blob([JSON.stringify(completion('in chunks'))]).stream()
    const init = { method: 'POST', headers: JSON_TYPE, body: chunked, duplex: 'half' }
    expect(await (await fetch(`${url}/ai/v1/chat/completions`, init as RequestInit)).json()).toMatchObject({
      choices: [{ message: { content: 'in chunks' } }],
    })
    const broken = await fetch(`${url}/ai/v1/chat/completions`, { method: 'POST', headers: JSON_TYPE, body: '{"model"' })
    expect(broken.status).toBe(400)
  })

  test('streams: the first words come before the last are said', async () => {
    const agents = mounting()
    const url = await place(agents)
    const response = await post(`${url}/ai/v1/chat/completions`, completion('wait for it', true))
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    const { soFar, rest } = await readUntil(response, '"wait"')
    expect(soFar).toContain('"wait"')
    agents.goOn()
    expect(await rest()).toContain('[DONE]')
  })

  test('its card leads back to it', async () => {
    const url = await place(mounting())
    const card = (await (await fetch(`${url}/ai/.well-known/agent-card.json`)).json()) as { supportedInterfaces: { url: string }[] }
    const [first] = card.supportedInterfaces
    expect(card.supportedInterfaces.map((each) => each.url)).toEqual(
      card.supportedInterfaces.map(() => expect.stringMatching(new RegExp(`^${url}/ai/`))),
    )
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'over A2A' }] }
    const sent = await post(
      first?.url ?? '',
      { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } },
      { ...JSON_TYPE, 'a2a-version': '1.0' },
    )
    expect(await sent.text()).toContain('over A2A')
  })

  test(upgrades ? 'clients get a WebSocket' : 'clients fall back to SSE', async () => {
    const url = await place(mounting())
    const client = connect(`${url}/ai`, upgrades ? { transport: 'websocket' } : {})
    onTestFinished(() => client.close())
    const session = await client.session()
    expect(await session.say('hello again')).toBe('hello again')
  })
})
