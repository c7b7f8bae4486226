import { connect, says } from '../../../openai/realtime-wire.ts'
import { demandOf, type Driver, type Told } from '../driver.ts'

export const realtime: Driver = {
  name: 'Realtime',
  ways: ['header'],
  async open({ url, after }) {
    let wire: Awaited<ReturnType<typeof connect>> | undefined
    let told: Told
    const open = async (headers: Record<string, string> = {}) => {
      const opened = await connect(url, { path: '/v1/realtime?model=shop', headers })
      after(() => opened.socket.terminate())
      const session = { type: 'realtime', output_modalities: ['text'] }
      await opened.ask({ type: 'session.update', session }, 'session.updated')
      return opened
    }
    const read = async (): Promise<Told> => {
      for (;;) {
        const event = await (wire as NonNullable<typeof wire>).next(() => true)
        if (event.type === 'response.output_text.delta') {
          told.text += event['delta']
          if (told.events?.at(-1)?.type !== 'text') told.events?.push({ type: 'text' })
        }
        if (event.type.startsWith('payment.')) told.events?.push(event)
        if (event.type === 'error') return { ...told, end: `error ${event['error'].code}` }
        if (event.type === 'payment.required') return { ...told, end: 'asked', demand: demandOf(event) }
        if (event.type !== 'response.done') continue
        const { status, status_details: details } = event['response']
        told.end = status === 'completed' ? 'done' : status === 'failed' ? `error ${details.error.code}` : status
        wire?.send({ type: 'output_audio_buffer.clear' })
        const from = wire?.heard.indexOf(event) ?? 0
        const last = await wire?.next('output_audio_buffer.cleared')
        for (const late of wire?.heard.slice(from, last && wire.heard.indexOf(last)) ?? [])
          if (late.type.startsWith('payment.')) told.events?.push(late)
        return { ...told }
      }
    }
    return {
      async say(prompt, paying) {
        told = { text: '', end: 'none', events: [] }
        wire ??= await open(paying && { 'x-payment': paying.token })
        wire.send(says(prompt))
        wire.send({ type: 'response.create' })
        return read()
      },
      async pay(token) {
        wire?.send({ type: 'payment.submit', payment: { scheme: 'token', token } })
        return read()
      },
      async decline() {
        wire?.send({ type: 'payment.submit', payment: { scheme: 'declined' } })
        return read()
      },
      async cancel() {
        wire?.send({ type: 'response.cancel' })
        return read()
      },
      async payNobody(token) {
        wire ??= await open()
        wire.send({ type: 'payment.submit', payment: { scheme: 'token', token } })
        return (await wire.next('error'))['error'].code
      },
      vanish: () => wire?.socket.terminate(),
    }
  },
}
