import { randomUUID } from 'node:crypto'
import { sse, Told, type Wire } from '../../support/raw.ts'
import { Hearing, Lost, STREAMED_STORED, type Driver } from '../driver.ts'

export const agUi: Driver = {
  name: 'AG-UI',
  choices: STREAMED_STORED,
  async ask({ prompt, ...stage }) {
    const messages = [{ id: randomUUID(), role: 'user', content: prompt }]
    const body = { threadId: randomUUID(), runId: randomUUID(), protocolVersion: '1.0', messages }
    const hearing = new Hearing()
    for await (const { data } of sse(`${await stage.url()}/ag-ui`, body)) {
      const event: Wire = JSON.parse(data)
      if (event.type === 'RUN_ERROR') throw new Told(event.code, event.message)
      if (event.type === 'TEXT_MESSAGE_CONTENT') hearing.add(event.delta)
      if (event.type === 'ACTIVITY_SNAPSHOT') hearing.media ??= event.content.item?.image
      if (event.type === 'RUN_FINISHED') return hearing.said()
    }
    throw new Lost('no end')
  },
}
