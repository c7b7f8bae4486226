import { isEnd, textOf } from '../../support/talk.ts'
import { overSse, overWebSocket, type Connect } from '../../support/wire.ts'
import { RESULT } from '../far-agent.ts'
import { CALL, DOUBLE_FUNCTION, type Caller, type Inbound } from './inbound.ts'

const over = (name: string, connect: Connect): Inbound => ({
  name,
  ...CALL,
  words: { tool: '`tool.call`, `tool.result`', cancel: '`response.cancel`, `response.cancelled`', error: '`response.error`' },
  connect: (url) => open(url, connect),
})

async function open(url: string, connect: Connect): Promise<Caller> {
  const wire = await connect(url)
  await wire.open({ session: { modalities: ['text'], tools: [DOUBLE_FUNCTION] } })
  const begin = async (text: string): Promise<void> => {
    await wire.send({ type: 'input.text', text })
    await wire.send({ type: 'response.create' })
  }
  return {
    async say(text) {
      const calls: string[] = []
      await begin(text)
      for (;;) {
        const event = await wire.next((each) => each.type === 'tool.call' || isEnd(each))
        if (event.type !== 'tool.call') return { text: textOf(wire.heard), calls, error: event['error']?.message }
        calls.push(event['name'])
        await wire.send({ type: 'tool.result', call_id: event['call_id'], result: RESULT })
      }
    },
    async cancel(text) {
      await begin(text)
      await wire.next('response.delta')
      await wire.send({ type: 'response.cancel' })
      return (await wire.next(isEnd)).type
    },
  }
}

export const eventsWebSocket = over('UAMP events, WebSocket', overWebSocket)
export const eventsSse = over('UAMP events, SSE', overSse)
