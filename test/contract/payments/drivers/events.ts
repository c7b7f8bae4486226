import { overSse, overWebSocket, type Connect, type Heard, type Wire } from '../../../support/wire.ts'
import { isEnd } from '../../../support/talk.ts'
import { demandOf, type Client, type Driver, type Told } from '../driver.ts'

const over = (name: string, connect: Connect): Driver => ({
  name,
  ways: ['session.create', 'session.update', 'input.text'],
  async open({ url, after }) {
    const wire = await connect(url)
    after(() => wire.close())
    return clientOf(wire)
  },
})

function clientOf(wire: Wire): Client {
  let told: Told
  let opened: Promise<string> | undefined
  /** Reads until it is over, or asks. After the end the balance may follow: a pong shows that it has come or will not. */
  const read = async (): Promise<Told> => {
    for (;;) {
      const event = await wire.next((each) => each['response_id'] !== undefined)
      take(told, event)
      if (event.type === 'payment.required') return { ...told }
      if (!isEnd(event)) continue
      told.end = endOf(event)
      await wire.send({ type: 'capabilities.query' })
      await wire.next('capabilities')
      for (const late of wire.heard.slice(wire.heard.indexOf(event) + 1)) take(told, late)
      return { ...told }
    }
  }
  return {
    async say(prompt, paying) {
      told = { text: '', end: 'none', events: [] }
      const token = paying && { payment_token: paying.token }
      const isUpdated = paying?.way === 'session.update'
      opened ??= wire.open(paying?.way === 'session.create' ? token : {})
      const session_id = await opened
      if (isUpdated) await wire.send({ type: 'session.update', session_id, session: {}, ...token })
      await wire.send({ type: 'input.text', text: prompt, ...(paying?.way === 'input.text' && token) })
      await wire.send({ type: 'response.create' })
      return read()
    },
    async pay(token) {
      const refused = await wire.send({ type: 'payment.submit', payment: { scheme: 'token', token } })
      return refused ? { text: '', end: `error ${refused.code}` } : read()
    },
    async decline() {
      await wire.send({ type: 'payment.submit', payment: { scheme: 'declined' } })
      return read()
    },
    async cancel() {
      await wire.send({ type: 'response.cancel' })
      return read()
    },
    async payNobody(token) {
      await (opened ??= wire.open())
      return (await wire.send({ type: 'payment.submit', payment: { scheme: 'token', token } }))?.code ?? 'taken'
    },
    vanish: () => wire.cut(),
  }
}

function take(told: Told, event: Heard): void {
  if (event.type === 'response.delta' && event['delta'].type === 'text') {
    told.text += event['delta'].text
    if (told.events?.at(-1)?.type !== 'text') told.events?.push({ type: 'text' })
  }
  if (event.type.startsWith('payment.')) told.events?.push(event)
  if (event.type !== 'payment.required') return
  told.end = 'asked'
  told.demand = demandOf(event)
}

function endOf(event: Heard): string {
  if (event.type === 'response.done') return 'done'
  return event.type === 'response.cancelled' ? 'cancelled' : `error ${event['error'].code}`
}

export const eventsWebSocket = over('UAMP events, WebSocket', overWebSocket)
export const eventsSse = over('UAMP events, SSE', overSse)
