import { Line, sse, Told, type Wire } from '../../support/raw.ts'
import { Hearing, Lost, STREAMED_STORED, type Driver } from '../driver.ts'
import type { Said } from '../said.ts'

const create = { type: 'session.create', uamp_version: '1.0', session: { modalities: ['text'] } }
const request = (prompt: string) => [{ type: 'input.text', text: prompt }, { type: 'response.create' }]

/** Takes one event. Gives what was said when it was the last. */
export function heardIn(hearing: Hearing, event: Wire): Said | undefined {
  switch (event.type) {
    case 'response.delta':
      if (event.delta.type === 'image') hearing.media = event.delta.image
      hearing.add(event.delta.text)
      return undefined
    case 'response.error':
    case 'session.error':
      throw new Told(event.error.code, event.error.message)
    case 'response.cancelled':
      throw new Told('cancelled')
    case 'response.done': {
      const output = event.response.output as Wire[]
      const whole = output.map(({ text }) => text ?? '').join('')
      // What is said only at the end is only there.
      if (hearing.silent) hearing.add(whole)
      return hearing.said(whole)
    }
    default:
      return undefined
  }
}

export const eventsWebSocket: Driver = {
  name: 'UAMP events, WebSocket',
  choices: STREAMED_STORED,
  async ask(stage) {
    const line = await Line.open(`${await stage.url()}/uamp`, stage)
    const messages = line.messages()
    line.send(create)
    await line.next(messages, 'session.created')
    for (const event of request(stage.prompt)) line.send(event)
    const hearing = new Hearing()
    for await (const event of messages) {
      const said = heardIn(hearing, event)
      if (said) return said
    }
    throw new Lost('no end')
  },
}

export const eventsHttp: Driver = {
  name: 'UAMP events, HTTP',
  choices: STREAMED_STORED,
  async ask(stage) {
    const hearing = new Hearing()
    for await (const { data } of sse(`${await stage.url()}/events`, [create, ...request(stage.prompt)])) {
      const said = heardIn(hearing, JSON.parse(data))
      if (said) return said
    }
    throw new Lost('no end')
  },
}
