import { json, sse, Told as Refused, type Sending, type Wire } from '../../../support/raw.ts'
import { demandIn, type Client, type Driver, type Paying, type Stage, type Told } from '../driver.ts'

type Ask = (url: string, prompt: string, sending: Sending) => Promise<Told>

const HEADERS = ['X-PAYMENT', 'PAYMENT-SIGNATURE', 'X-Payment-Token']

/** A request that is whole: whoever pays sends it again. */
function driver(name: string, path: string, { ask, body, ...more }: { ask: Ask; body: object } & Pick<Driver, 'silent'>): Driver {
  return {
    name,
    ways: HEADERS,
    stateless: true,
    ...more,
    async twoHeaders(url, [one, two]) {
      const headers = { 'content-type': 'application/json', 'x-payment': one, 'payment-signature': two }
      return (await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })).status
    },
    open: async ({ url }: Stage): Promise<Client> => {
      let prompt = ''
      const leave = new AbortController()
      const send = async (paying?: Paying): Promise<Told> => {
        const sending = { signal: leave.signal, headers: paying ? { [paying.way]: paying.token } : {} }
        return ask(url + path, prompt, sending)
      }
      return {
        say(said, paying) {
          prompt = said
          return send(paying)
        },
        pay: (token) => send({ token, way: 'X-PAYMENT' }),
        vanish: () => leave.abort(),
      }
    },
  }
}

/** An answer that is a status. */
function refusedWith(thrown: unknown, text = ''): Told {
  if (!(thrown instanceof Refused)) throw thrown
  if (!thrown.message.startsWith('402')) return { text, end: `error ${thrown.code}` }
  return { text, end: 'asked', status: 402, demand: demandIn(JSON.parse(thrown.body ?? '{}').error.accepts) }
}

const MESSAGES = (prompt: string) => ({ model: 'shop', messages: [{ role: 'user', content: prompt }] })

const completionsStreamed =
  (more: object): Ask =>
  async (url, prompt, sending) => {
    let text = ''
    try {
      for await (const { data } of sse(url, { ...MESSAGES(prompt), ...more, stream: true }, sending)) {
        if (data === '[DONE]') break
        const { error, choices }: Wire = JSON.parse(data)
        if (error) return { text, end: endOf(error), demand: demandIn(error.accepts) }
        text += choices[0]?.delta.content ?? ''
      }
      return { text, end: 'done' }
    } catch (thrown) {
      return refusedWith(thrown, text)
    }
  }

const completionsWhole =
  (more: object): Ask =>
  async (url, prompt, sending) => {
    try {
      const { choices } = await json(url, { ...MESSAGES(prompt), ...more }, sending)
      return { text: choices[0].message.content ?? '', end: 'done' }
    } catch (thrown) {
      return refusedWith(thrown)
    }
  }

const endOf = ({ code }: Wire): string => (code === 'payment_required' ? 'asked' : `error ${code}`)

const responsesStreamed =
  (more: object): Ask =>
  async (url, prompt, sending) => {
    let text = ''
    try {
      for await (const { data } of sse(url, { model: 'shop', input: prompt, ...more, stream: true }, sending)) {
        const event: Wire = JSON.parse(data)
        if (event.type === 'response.output_text.delta') text += event.delta
        if (event.type === 'response.completed') return { text, end: 'done' }
        if (event.type === 'response.failed') {
          const { error } = event.response
          return { text, end: endOf(error), demand: demandIn(error.accepts) }
        }
      }
      return { text, end: 'no end' }
    } catch (thrown) {
      return refusedWith(thrown, text)
    }
  }

const responsesWhole =
  (more: object): Ask =>
  async (url, prompt, sending) => {
    try {
      let response = await json(url, { model: 'shop', input: prompt, ...more }, sending)
      while (response.status === 'queued' || response.status === 'in_progress') response = await json(`${url}/${response.id}`)
      const text = response.output.flatMap(({ content = [] }: Wire) => content.map((part: Wire) => part.text)).join('')
      if (response.status === 'completed') return { text, end: 'done' }
      return { text, end: endOf(response.error), demand: demandIn(response.error.accepts) }
    } catch (thrown) {
      return refusedWith(thrown)
    }
  }

const COMPLETIONS = '/v1/chat/completions'
const RESPONSES = '/v1/responses'

export const OPENAI: readonly Driver[] = [
  driver('Completions', COMPLETIONS, { ask: completionsWhole({}), body: MESSAGES('/pay 0.05'), silent: true }),
  driver('Completions, stored', COMPLETIONS, { ask: completionsWhole({ store: true }), body: MESSAGES('/pay 0.05'), silent: true }),
  driver('Completions, streamed', COMPLETIONS, { ask: completionsStreamed({}), body: { ...MESSAGES('/pay 0.05'), stream: true } }),
  driver('Responses', RESPONSES, { ask: responsesWhole({}), body: { input: '/pay 0.05' }, silent: true }),
  driver('Responses, not stored', RESPONSES, { ask: responsesWhole({ store: false }), body: { input: '/pay 0.05' }, silent: true }),
  driver('Responses, streamed', RESPONSES, { ask: responsesStreamed({}), body: { input: '/pay 0.05', stream: true } }),
  driver('Responses, in the background', RESPONSES, { ask: responsesWhole({ background: true }), body: { input: '/pay 0.05' } }),
]
