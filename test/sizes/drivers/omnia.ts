import { Line, Told, type Wire } from '../../support/raw.ts'
import { Hearing, Lost, STREAMED_STORED, type Driver } from '../driver.ts'

export const omnia: Driver = {
  name: 'Omnia',
  choices: STREAMED_STORED,
  // Omnia has no code for an answer that is too large.
  limit: ({ size, shape }) =>
    size === '60 MiB' && shape === 'media, then text' ? { code: 'INVALID_MESSAGE', why: '`outputBytes`' } : undefined,
  async ask({ prompt, ...stage }) {
    const line = await Line.open(`${await stage.url()}/omnia?agent=sayer`, stage)
    const messages = line.messages()
    const { session_id } = await line.next(messages, 'connected')
    line.send({ type: 'message', session_id, content: prompt })
    const hearing = new Hearing()
    for await (const { type, content, parts, error } of messages) {
      if (type === 'error') throw new Told(error.code, JSON.stringify(error))
      if (type === 'chunk') hearing.add(content)
      if (type !== 'done') continue
      hearing.media = parts?.find((part: Wire) => part.type === 'image')?.media.data
      return hearing.said(content)
    }
    throw new Lost('no end')
  },
}
