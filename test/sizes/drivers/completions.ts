import { json, sse, Told, type Wire } from '../../support/raw.ts'
import { ALL_CHOICES, Hearing, Lost, type Driver } from '../driver.ts'

export const completions: Driver = {
  name: 'Chat Completions',
  choices: ALL_CHOICES,
  async ask({ cell, prompt, ...stage }) {
    const url = `${await stage.url()}/v1/chat/completions`
    const body = { model: 'sayer', store: cell.stored, messages: [{ role: 'user', content: prompt }] }
    const hearing = new Hearing()
    if (!cell.streamed) {
      const [{ message, finish_reason }] = (await json(url, body)).choices
      if (finish_reason !== 'stop') throw new Lost(`finish_reason ${finish_reason}`)
      hearing.add(message.content)
      hearing.media = pictureIn(message)
      return hearing.said()
    }
    let finished = false
    for await (const { data } of sse(url, { ...body, stream: true })) {
      if (data === '[DONE]') {
        if (!finished) throw new Lost('no finish_reason')
        return hearing.said()
      }
      const chunk: Wire = JSON.parse(data)
      if (chunk.error) throw new Told(chunk.error.code, chunk.error.message)
      const [{ delta, finish_reason }] = chunk.choices
      hearing.add(delta.content)
      hearing.media ??= pictureIn(delta)
      finished ||= finish_reason === 'stop'
    }
    throw new Lost('no [DONE]')
  },
}

function pictureIn({ content_items: items = [] }: Wire): string | undefined {
  return items.find(({ type }: Wire) => type === 'image')?.image
}
