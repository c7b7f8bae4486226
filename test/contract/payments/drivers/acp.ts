import { Client as AcpClient, overHttp, overSocket, type Connect, type Heard } from '../../../acp/wire.ts'
import { demandIn, type Client, type Driver, type Told } from '../driver.ts'

/** `connect` makes a connection to the server of this URL. */
const acp = (name: string, connect: (url: string) => Connect): Driver => ({
  name,
  ways: ['payment_token', '_meta'],
  open: async ({ url, after }): Promise<Client> => {
    const client = await AcpClient.connect(connect(url))
    after(() => client.close())
    await client.initialize({ _meta: { uamp: { events: true } } })
    const session = await client.open()
    let prompt = ''
    let from = 0
    const send = async (paying: object = {}): Promise<Told> => {
      const { result, error } = await client.say(session, prompt, paying)
      const isEvent = (type: string) => (message: Heard) => message['method'] === '_uamp/event' && message['params'].event.type === type
      // The balance may come after the answer.
      if (result && client.heard.slice(from).some(isEvent('payment.accepted'))) {
        const balance = isEvent('payment.balance')
        await client.next((message) => client.heard.indexOf(message) >= from && balance(message))
      }
      const heard = client.heard.slice(from)
      const text = heard
        .filter(({ method, params }) => method === 'session/update' && params.update.sessionUpdate === 'agent_message_chunk')
        .map(({ params }) => params.update.content.text as string)
        .join('')
      const events = heard
        .flatMap(({ method, params }) => {
          if (method === '_uamp/event' && params.event.type.startsWith('payment.')) return [params.event]
          return method === 'session/update' && params.update.sessionUpdate === 'agent_message_chunk' ? [{ type: 'text' }] : []
        })
        .filter(({ type }, index, all) => type !== 'text' || all[index - 1]?.type !== 'text')
      if (error?.code === -32402) return { text, end: 'asked', demand: demandIn(error.data.accepts), events }
      if (error) return { text, end: `error ${error.data?.code}`, events }
      return { text, end: result.stopReason === 'end_turn' ? 'done' : result.stopReason, events, paid: result._meta?.uamp?.payments ?? [] }
    }
    return {
      say(said, paying) {
        prompt = said
        from = client.heard.length
        const { token, way } = paying ?? {}
        return send(way === '_meta' ? { _meta: { 'uamp/payment_token': token } } : token ? { payment_token: token } : {})
      },
      pay: (token) => send({ payment_token: token }),
      // The prompt was answered; what is left of it is cancelled.
      async decline() {
        client.send({ method: 'session/cancel', params: { sessionId: session } })
        prompt = 'hello'
        from = client.heard.length
        return send()
      },
      vanish: () => client.close(),
    }
  },
})

export const ACP: readonly Driver[] = [acp('ACP, WebSocket', overSocket), acp('ACP, HTTP', overHttp)]
