import { connect, UampClientError } from '../../../src/client/node.ts'
import { Told } from '../../support/raw.ts'
import { Hearing, STREAMED_STORED, Lost, type Driver } from '../driver.ts'
import { heardIn } from './events.ts'

const over = (name: string, transport: 'websocket' | 'sse'): Driver => ({
  name,
  choices: [...STREAMED_STORED, { streamed: false, stored: true }],
  async ask({ cell, prompt, ...stage }) {
    const client = connect(await stage.url(), { transport })
    stage.after(() => client.close())
    const hearing = new Hearing()
    try {
      const session = await client.session()
      if (!cell.streamed) {
        hearing.add(await session.say(prompt))
        return hearing.said()
      }
      for await (const event of session.ask(prompt)) {
        const said = heardIn(hearing, event)
        if (said) return said
      }
    } catch (thrown) {
      throw thrown instanceof UampClientError ? new Told(thrown.code, thrown.message) : thrown
    }
    throw new Lost('no end')
  },
})

export const clientWebSocket = over('our client, WebSocket', 'websocket')
export const clientSse = over('our client, SSE', 'sse')
