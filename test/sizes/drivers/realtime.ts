import { Line, Told } from '../../support/raw.ts'
import { Hearing, Lost, type Driver, type Stage } from '../driver.ts'
import type { Said } from '../said.ts'

/** Nothing of a Realtime session is kept. */
const CHOICES = [{ streamed: true, stored: false }] as const

async function ask(stage: Stage, modality: 'text' | 'audio'): Promise<Said> {
  const line = await Line.open(`${await stage.url()}/v1/realtime?model=sayer`, stage)
  const messages = line.messages()
  await line.next(messages, 'session.created')
  line.send({ type: 'session.update', session: { type: 'realtime', output_modalities: [modality] } })
  line.send({
    type: 'conversation.item.create',
    item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: stage.prompt }] },
  })
  line.send({ type: 'response.create' })
  const hearing = new Hearing()
  let whole = ''
  for await (const event of messages) {
    if (event.type === 'error') throw new Told(event.error.code, JSON.stringify(event))
    if (event.type === 'response.output_text.delta') hearing.add(event.delta)
    if (event.type === 'response.output_text.done') whole += event.text
    if (event.type === 'response.output_audio.delta') hearing.hear(event.delta)
    // What Realtime has no event for comes as the UAMP event that it is.
    if (event.type === 'response.delta') hearing.media = event.delta.image
    if (event.type !== 'response.done') continue
    const { status, status_details: details } = event.response
    if (status !== 'completed') throw new Told(details?.error?.code ?? status)
    return hearing.said(whole)
  }
  throw new Lost('no end')
}

export const realtimeText: Driver = { name: 'Realtime, text', choices: CHOICES, ask: (stage) => ask(stage, 'text') }
export const realtimeSound: Driver = { name: 'Realtime, audio', choices: CHOICES, sound: true, ask: (stage) => ask(stage, 'audio') }
