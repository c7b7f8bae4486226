import { expect, test } from 'vitest'
import { connect } from '../../src/client/node.ts'
import { mirror } from '../support/agents.ts'
import { startServer } from '../support/server.ts'

test('over SSE an event that is larger than the client takes ends its session, and is not fetched for ever', async () => {
  const { url } = await startServer(mirror)
  let streams = 0
  const fetching: typeof fetch = async (input, init) => {
    const response = await fetch(input, init)
    if (!(input as string).includes('/events/stream')) return response
    streams++
    // What the parser throws after hundreds of megabytes.
    const body = new ReadableStream({ pull: (controller) => controller.error(new RangeError('an event of more than …')) })
    return new Response(body, response)
  }
  const client = connect(url, { transport: 'sse', fetch: fetching, reconnect: { minMs: 1 } })
  const session = await client.session()
  await expect(session.say('go')).rejects.toMatchObject({ code: 'too_large' })
  expect(streams).toBe(1)
  client.close()
})
