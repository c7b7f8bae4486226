import { json, Line, sse, Told, type Wire } from '../../support/raw.ts'
import { ALL_CHOICES, Hearing, Lost, type Driver } from '../driver.ts'
import type { Said } from '../said.ts'

/** Takes one event. Gives what was said when it was the last. */
function heardIn(hearing: Hearing, event: Wire): Said | undefined {
  switch (event.type) {
    case 'response.output_text.delta':
      hearing.add(event.delta)
      return undefined
    case 'response.failed':
    case 'response.incomplete':
      throw new Told(event.response.error?.code ?? event.type)
    case 'error':
      throw new Told(event.error?.code ?? event.code, JSON.stringify(event))
    case 'response.completed':
      hearing.media = pictureIn(event.response)
      return hearing.said(textIn(event.response))
    default:
      return undefined
  }
}

const textIn = ({ output }: Wire): string =>
  output.flatMap(({ content = [] }: Wire) => content.map(({ text }: Wire) => text ?? '')).join('')

const pictureIn = ({ output }: Wire): string | undefined => output.find(({ type }: Wire) => type === 'image_generation_call')?.result

export const responses: Driver = {
  name: 'Responses',
  choices: ALL_CHOICES,
  async ask({ cell, prompt, ...stage }) {
    const url = `${await stage.url()}/v1/responses`
    const body = { model: 'sayer', store: cell.stored, input: prompt }
    const hearing = new Hearing()
    if (!cell.streamed) {
      const response = await json(url, body)
      if (response.status !== 'completed') throw new Lost(`status ${response.status}`)
      hearing.add(textIn(response))
      hearing.media = pictureIn(response)
      return hearing.said()
    }
    for await (const { data } of sse(url, { ...body, stream: true })) {
      const said = heardIn(hearing, JSON.parse(data))
      if (said) return said
    }
    throw new Lost('no end')
  },
}

export const responsesWebSocket: Driver = {
  name: 'Responses, WebSocket',
  choices: ALL_CHOICES.filter(({ streamed }) => streamed),
  async ask({ cell, prompt, ...stage }) {
    const line = await Line.open(`${await stage.url()}/v1/responses`, stage)
    line.send({ type: 'response.create', model: 'sayer', store: cell.stored, input: prompt })
    const hearing = new Hearing()
    for await (const event of line.messages()) {
      const said = heardIn(hearing, event)
      if (said) return said
    }
    throw new Lost('no end')
  },
}
