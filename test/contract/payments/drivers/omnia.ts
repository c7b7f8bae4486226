import { OmniaClient, type Heard } from '../../../omnia/omnia-client.ts'
import { demandIn, type Client, type Driver, type Told } from '../driver.ts'

export const omnia: Driver = {
  name: 'Omnia',
  ways: ['metadata'],
  open: async ({ url }): Promise<Client> => {
    const client = await OmniaClient.open(url, { path: '/omnia?agent=shop' })
    let at = client.heard.length
    let prompt = ''
    let told: Told
    const send = (content: string, token?: string): void =>
      client.send({
        type: 'message',
        session_id: client.sessionId,
        content,
        ext: { events: true },
        ...(token && { metadata: { payment_token: token } }),
      })
    const read = async (): Promise<Told> => {
      for (;;) {
        for (; at < client.heard.length; at++) {
          const message = client.heard[at] as Heard
          if (message.type === 'chunk') {
            told.text += message['content']
            if (told.events?.at(-1)?.type !== 'text') told.events?.push({ type: 'text' })
          }
          if (message.type === 'ext' && message['ext']?.event?.type.startsWith('payment.')) told.events?.push(message['ext'].event)
          if (message.type === 'done') {
            told.end = message['ext']?.status === 'cancelled' ? 'cancelled' : 'done'
            // The balance may come after the answer.
            if (told.events?.some(({ type }) => type === 'payment.accepted')) continue
            at++
            return { ...told }
          }
          if (told.events?.at(-1)?.type === 'payment.balance') {
            at++
            return { ...told }
          }
          if (message.type !== 'error') continue
          at++
          const { code, details } = message['error']
          if (code === 'PAYMENT_REQUIRED' && details.accepts) return { ...told, end: 'asked', demand: demandIn(details.accepts) }
          return { ...told, end: `error ${details?.code ?? code}` }
        }
        await new Promise((resolve) => client.socket.once('message', resolve))
      }
    }
    return {
      say(said, paying) {
        told = { text: '', end: 'none', events: [] }
        prompt = said
        send(said, paying?.token)
        return read()
      },
      pay(token) {
        send(prompt, token)
        return read()
      },
      // Whoever says something else has not paid.
      decline() {
        told = { text: '', end: 'none', events: [] }
        send('hello')
        return read()
      },
      vanish: () => client.socket.terminate(),
    }
  },
}
