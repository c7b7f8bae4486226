import { randomUUID } from 'node:crypto'
import { messagesOf, type Heard } from '../../../ag-ui/wire.ts'
import { sse, Told as Refused } from '../../../support/raw.ts'
import { demandIn, demandOf, type Client, type Driver, type Told } from '../driver.ts'

export const agUi: Driver = {
  name: 'AG-UI',
  ways: ['X-PAYMENT', 'forwardedProps'],
  async twoHeaders(url, [one, two]) {
    const headers = { 'content-type': 'application/json', 'x-payment': one, 'payment-signature': two }
    const messages = [{ id: 'm1', role: 'user', content: '/pay 0.05' }]
    const body = JSON.stringify({ threadId: randomUUID(), runId: randomUUID(), protocolVersion: '1.0', messages })
    return (await fetch(`${url}/ag-ui`, { method: 'POST', headers, body })).status
  },
  open: async ({ url }): Promise<Client> => {
    const threadId = randomUUID()
    const messages: object[] = []
    const leave = new AbortController()
    let told: Told
    let interrupt: string | undefined
    const run = async (more: object, headers: Record<string, string> = {}): Promise<Told> => {
      const heard: Heard[] = []
      const body = { threadId, runId: randomUUID(), protocolVersion: '1.0', messages, ...more }
      interrupt = undefined
      told.demand = undefined
      told.status = undefined
      told.end = 'no end'
      try {
        for await (const { data } of sse(`${url}/ag-ui`, body, { headers, signal: leave.signal })) {
          const event = JSON.parse(data) as Heard
          heard.push(event)
          if (event.type === 'TEXT_MESSAGE_CONTENT') {
            told.text += event['delta']
            if (told.events?.at(-1)?.type !== 'text') told.events?.push({ type: 'text' })
          }
          if (event.type === 'CUSTOM' && event['name'].startsWith('uamp.payment.')) {
            told.events?.push({ ...event['value'], type: event['name'].slice('uamp.'.length) })
          }
          if (event.type === 'RUN_ERROR') told.end = `error ${event['code']}`
          if (event.type !== 'RUN_FINISHED') continue
          const [asked] = event['outcome'].interrupts ?? []
          if (asked?.reason === 'uamp:payment_required') {
            interrupt = asked.id
            const { requirements, accepts } = asked.metadata.uamp
            told.demand = demandOf({ requirements, extra: accepts[0].extra })
            told.end = 'asked'
          } else told.end = event['outcome'].type === 'success' ? 'done' : event['outcome'].type
          told.paid = event['metadata']?.uamp?.payments ?? []
        }
      } catch (thrown) {
        if (!(thrown instanceof Refused)) throw thrown
        if (!thrown.message.startsWith('402')) return { ...told, end: `error ${thrown.code}` }
        const { accepts } = JSON.parse(thrown.body ?? '{}').error.details
        return { ...told, end: 'asked', status: 402, demand: demandIn(accepts) }
      }
      messages.push(...messagesOf(heard))
      return { ...told }
    }
    const answer = (token: string | undefined): object => ({
      resume: [
        { interruptId: interrupt, ...(token ? { status: 'resolved', payload: { payment_token: token } } : { status: 'cancelled' }) },
      ],
    })
    return {
      say(prompt, paying) {
        told = { text: '', end: 'none', events: [] }
        messages.push({ id: randomUUID(), role: 'user', content: prompt })
        if (paying?.way === 'forwardedProps') return run({ forwardedProps: { uamp: { payment_token: paying.token } } })
        return run({}, paying && { 'x-payment': paying.token })
      },
      pay: (token) => (interrupt === undefined ? run({}, { 'x-payment': token }) : run(answer(token))),
      decline: () => (interrupt === undefined ? Promise.resolve({ ...told, end: 'error payment_required' }) : run(answer(undefined))),
      vanish: () => leave.abort(),
    }
  },
}
