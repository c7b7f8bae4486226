import { exchange, UampError, type Call, type Host, type Transport } from 'uamp'

/** A protocol without any JSON: a question goes in as plain text, and the answer comes out as it is made. */
export const plain: Transport = {
  name: 'plain',
  routes: (host) => [
    {
      method: 'POST',
      path: '/plain',
      access: 'request',
      handle: async (request, call) => ({ status: 200, headers: TEXT, frames: answer(host, call, await request.text()) }),
    },
    {
      method: 'WS',
      path: '/plain',
      access: 'request',
      async handle(socket, call) {
        for await (const question of socket) for await (const piece of answer(host, call, String(question))) await socket.send([piece])
      },
    },
  ],
}
const TEXT = { 'content-type': 'text/plain; charset=utf-8' }

async function* answer({ gateway }: Host, { agent, principal, signal, payment }: Call, content: string): AsyncGenerator<string, void> {
  if (agent === undefined || !principal) throw new UampError('not_found', 'Call it below /agents/{name}')
  for await (const event of exchange(gateway, { agent, principal, signal, payment, messages: [{ role: 'user', content }] }))
    if (event.type === 'response.delta' && event.delta.type === 'text') yield event.delta.text
}
