import { randomUUID } from 'node:crypto'
import { json, sse, type Wire } from '../../../support/raw.ts'
import type { Client, Demand, Driver, Paying, Told } from '../driver.ts'

interface Generation {
  readonly name: string
  readonly version: string
  readonly methods: Readonly<Record<'send' | 'stream' | 'get' | 'cancel', string>>
  readonly message: (text: string, more: object) => object
  /** An update in the words of 1.0. */
  readonly read: (result: Wire) => Wire
}

const KINDS: Readonly<Record<string, string>> = { task: 'task', 'artifact-update': 'artifactUpdate', 'status-update': 'statusUpdate' }

const ONE: Omit<Generation, 'name'> = {
  version: '1.0',
  methods: { send: 'SendMessage', stream: 'SendStreamingMessage', get: 'GetTask', cancel: 'CancelTask' },
  message: (text, more) => ({ messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more }),
  read: (result) => result,
}
const THREE: Omit<Generation, 'name'> = {
  version: '0.3',
  methods: { send: 'message/send', stream: 'message/stream', get: 'tasks/get', cancel: 'tasks/cancel' },
  message: (text, more) => ({ kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text }], ...more }),
  read: (result) => ({ [KINDS[result.kind] ?? '']: result }),
}

const stateOf = ({ state }: Wire): string => state.toLowerCase().replace('task_state_', '').replace('_', '-')
const textIn = ({ artifacts = [] }: Wire): string =>
  artifacts.flatMap(({ parts }: Wire) => parts.map(({ text = '' }: Wire) => text)).join('')

/** How a task stands, as far as its money goes. */
function told(text: string, status: Wire): Told {
  const { metadata = {}, parts = [] } = status.message ?? {}
  const state = stateOf(status)
  if (state === 'completed') return { text, end: 'done' }
  if (state === 'canceled') return { text, end: 'cancelled' }
  if (state === 'failed') return { text, end: `error ${metadata.code}` }
  const question = parts.map(({ data }: Wire) => data).find((data: Wire) => data?.type === 'payment.required')
  if (state !== 'input-required' || !question) return { text, end: state }
  const { requirements, extra } = question
  const demand: Demand = { ...requirements, action: extra?.action, error: extra?.error?.code }
  return { text, end: metadata['x402.payment.status'] === 'payment-required' ? 'asked' : 'asked without x402', demand }
}

const driver = (generation: Generation, streamed: boolean): Driver => ({
  name: `${generation.name}, ${streamed ? 'streamed' : 'whole'}`,
  ways: ['X-PAYMENT', 'X-Payment-Token'],
  async twoHeaders(url, [one, two]) {
    const headers = { 'content-type': 'application/json', 'a2a-version': generation.version, 'x-payment': one, 'x-payment-token': two }
    const params = { message: generation.message('/pay 0.05', {}) }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: generation.methods.send, params })
    const { error } = (await (await fetch(`${url}/a2a`, { method: 'POST', headers, body })).json()) as Wire
    // JSON-RPC has a code of its own for what is 400 elsewhere.
    return error?.code === -32602 || error?.code === -32600 ? 400 : 200
  },
  open: async ({ url }): Promise<Client> => {
    let task: string | undefined
    const leave = new AbortController()
    const call = async (method: keyof Generation['methods'], params: object, paying?: Paying): Promise<Wire> => {
      const headers = { 'a2a-version': generation.version, ...(paying && { [paying.way]: paying.token }) }
      const body = { jsonrpc: '2.0', id: 1, method: generation.methods[method], params }
      return json(`${url}/a2a`, body, { headers, signal: leave.signal })
    }
    const whole = async (message: object, paying?: Paying): Promise<Told> => {
      const { result, error } = await call('send', { message }, paying)
      if (error) return { text: '', end: `error ${error.code}` }
      const { task: given } = generation.read(result)
      task = given.id
      return told(textIn(given), given.status)
    }
    const stream = async (message: object, paying?: Paying): Promise<Told> => {
      let text = ''
      let status: Wire
      const headers = { 'a2a-version': generation.version, ...(paying && { [paying.way]: paying.token }) }
      const body = { jsonrpc: '2.0', id: 1, method: generation.methods.stream, params: { message } }
      for await (const { data } of sse(`${url}/a2a`, body, { headers, signal: leave.signal })) {
        const { result, error } = JSON.parse(data) as Wire
        if (error) return { text, end: `error ${error.code}` }
        const update = generation.read(result)
        task ??= update.task?.id
        for (const { text: piece = '' } of update.artifactUpdate?.artifact.parts ?? []) text += piece
        status = update.statusUpdate?.status ?? update.task?.status ?? status
      }
      return told(text, status)
    }
    let before = ''
    const send = async (text: string, more: object, paying?: Paying): Promise<Told> => {
      const answer = await (streamed ? stream : whole)(generation.message(text, more), paying)
      // A task that is told whole has all of it; a stream has what is new.
      if (streamed) before = answer.text = before + answer.text
      return answer
    }
    return {
      say(prompt, paying) {
        task = undefined
        before = ''
        return send(prompt, {}, paying)
      },
      pay: (token) =>
        send('Here', { taskId: task, metadata: { 'x402.payment.status': 'payment-submitted', 'x402.payment.payload': token } }),
      decline: () => whole(generation.message('No', { taskId: task, metadata: { 'x402.payment.status': 'payment-rejected' } })),
      async cancel() {
        const { result } = await call('cancel', { id: task })
        return told(textIn(result), result.status)
      },
      async vanish() {
        leave.abort()
      },
    }
  },
})

/** `/tasks`: what is not paid for has failed, and a new task pays. */
const tasks: Driver = {
  name: 'A2A, /tasks',
  ways: ['X-PAYMENT', 'X-Payment-Token'],
  stateless: true,
  async twoHeaders(url, [one, two]) {
    const headers = { 'content-type': 'application/json', 'x-payment': one, 'x-payment-token': two }
    return (await fetch(`${url}/tasks`, { method: 'POST', headers, body: JSON.stringify({ message: early('/pay 0.05') }) })).status
  },
  open: async ({ url }): Promise<Client> => {
    let prompt = ''
    const leave = new AbortController()
    const send = async (paying?: Paying): Promise<Told> => {
      let text = ''
      const headers: Record<string, string> = paying ? { [paying.way]: paying.token } : {}
      for await (const { event, data } of sse(`${url}/tasks`, { message: early(prompt) }, { headers, signal: leave.signal })) {
        const body = JSON.parse(data) as Wire
        if (event === 'task.message') text += body.parts.map((part: Wire) => part.text ?? '').join('')
        if (event === 'task.completed') return { text, end: 'done' }
        if (event !== 'task.failed') continue
        if (body.status_code !== 402) return { text, end: `error ${body.code}` }
        const { amount, currency, extra } = body.accepts[0]
        return { text, end: 'asked', demand: { amount, currency, action: extra?.action, error: extra?.error?.code } }
      }
      return { text, end: 'no end' }
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

const early = (text: string): object => ({ role: 'user', parts: [{ type: 'text', text }] })

export const A2A: readonly Driver[] = [
  driver({ name: 'A2A 1.0', ...ONE }, true),
  driver({ name: 'A2A 1.0', ...ONE }, false),
  driver({ name: 'A2A 0.3', ...THREE }, true),
  driver({ name: 'A2A 0.3', ...THREE }, false),
  tasks,
]
