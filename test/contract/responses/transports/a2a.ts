import { randomUUID } from 'node:crypto'
import { json, sse, Told, type Wire } from '../../../support/raw.ts'
import type { Question, Seeing } from '../seen.ts'
import { RESULT } from '../shapes.ts'
import { answers, cancelling, firstHalf, SPEECH, SPEECH_FIRST, wordsLast, type Limit, type Stage, type Transport } from '../transport.ts'

/** What the generations call differently. */
interface Generation {
  readonly name: string
  readonly version: string
  readonly methods: Readonly<Record<'send' | 'stream' | 'get' | 'cancel' | 'subscribe', string>>
  readonly message: (parts: readonly object[], more: object) => object
  readonly waits: (forEnd: boolean) => object
  /** An update in the words of 1.0. */
  readonly read: (result: Wire) => Wire
  readonly limits: Transport['limits']
}

const part = (given: object): object => ({ kind: 'text' in given ? 'text' : 'data', ...given })
const KINDS: Readonly<Record<string, string>> = { task: 'task', 'artifact-update': 'artifactUpdate', 'status-update': 'statusUpdate' }

const LIMITS: readonly Limit[] = [
  {
    why: 'a task has artifacts: thoughts, tools and usage are told in a stream alone, by our extension',
    modes: ['whole', 'streamed again', 'whole again'],
    sees: () => ({ thoughts: '', calls: [], usage: 0 }),
  },
  { why: 'A2A has no streamed sound: all of it is one artifact, with its words', shapes: SPEECH, sees: () => ({ sound: 0, media: 1 }) },
  {
    why: 'a stream tells an artifact of sound when it is complete',
    shapes: SPEECH_FIRST,
    modes: ['streamed', 'resumed'],
    sees: wordsLast,
  },
]

/** Thoughts, tools and usage, for those who ask for them. */
const EVENTS = 'https://uamp.dev/a2a/events/v1'

/** An update of a stream, with its `id:`. */
type Update = Wire

class Client {
  readonly #generation: Generation
  readonly #url: string

  constructor(generation: Generation, url: string) {
    this.#generation = generation
    this.#url = `${url}/a2a`
  }

  async call(method: keyof Generation['methods'], params: object): Promise<Wire> {
    return resultOf(await json(this.#url, this.#body(method, params), this.#sending()))
  }

  async *stream(method: keyof Generation['methods'], params: object, after?: string): AsyncGenerator<Update, void> {
    for await (const { id, data } of sse(this.#url, this.#body(method, params), this.#sending(after)))
      yield { id, ...this.#generation.read(resultOf(JSON.parse(data))) }
  }

  #sending(after?: string) {
    const cursor = after === undefined ? {} : { 'last-event-id': after }
    return { headers: { 'a2a-version': this.#generation.version, 'a2a-extensions': EVENTS, ...cursor } }
  }

  #body(method: keyof Generation['methods'], params: object): object {
    return { jsonrpc: '2.0', id: 1, method: this.#generation.methods[method], params }
  }
}

function resultOf({ result, error }: Wire): Wire {
  if (error) throw new Told(String(error.code), JSON.stringify(error))
  return result
}

const stateOf = ({ state }: Wire): string => state.toLowerCase().replace('task_state_', '').replace('_', '-')

/** The first message of a task, and those that answer what it asks. */
async function converse(
  stage: Stage,
  client: Client,
  { generation, told, ids }: { generation: Generation; told: Update[]; ids: string[] },
): Promise<void> {
  const { seeing, prompt, shape, streamed } = stage
  const cancelled = cancelling(stage, async () => {
    await seeing.when(() => ids.length > 0)
    await client.call('cancel', { id: ids[0] }).catch((thrown: Told) => (seeing.refused = thrown.code))
  })
  let message = generation.message([{ text: prompt }], {})
  for (;;) {
    const status = await send(stage, client, { generation, told, ids, message })
    const asked = stateOf(status) === 'input-required' ? takeQuestion(seeing, status.message, stage.coin) : undefined
    if (!asked || !answers(stage)) break
    message = generation.message(asked.parts, { taskId: ids[0], metadata: asked.metadata })
  }
  if (shape.cancel !== 'after the end') await cancelled
  // Whoever does not listen asks; and a stream ends with the question.
  if (!streamed) takeTask(seeing, await client.call('get', { id: ids[0] }))
  else if (shape.cancel === 'while a question waits') takeStatus(seeing, (await client.call('get', { id: ids[0] })).status)
  await cancelled
}

interface Sent {
  readonly generation: Generation
  readonly told: Update[]
  readonly ids: string[]
  readonly message: object
}

/** One message. Gives the status that it leaves the task in. */
async function send({ seeing, shape, streamed }: Stage, client: Client, { generation, told, ids, message }: Sent): Promise<Wire> {
  const know = (id: string): void => {
    if (ids.length === 0) ids.push(id)
    seeing.wake()
  }
  if (!streamed) {
    // Who wants to cancel it cannot wait for its end.
    const configuration = generation.waits(shape.cancel === undefined || !CANCELLED.has(shape.cancel))
    const { task } = generation.read(await client.call('send', { message, configuration }))
    know(task.id)
    return task.status
  }
  let status: Wire
  for await (const update of client.stream('stream', { message })) {
    if (update.task) know(update.task.id)
    takeUpdate(seeing, update)
    told.push(update)
    status = update.statusUpdate?.status ?? status
  }
  return status
}

const CANCELLED: ReadonlySet<string> = new Set(['before the first word', 'in the middle'])

function takeParts(seeing: Seeing, parts: readonly Wire[]): void {
  for (const { text, raw, file, data } of parts) {
    seeing.say(text)
    if (raw !== undefined || file !== undefined || data !== undefined) seeing.show()
  }
}

/** The task as a whole: its artifacts, and in its history what it asked. */
function takeTask(seeing: Seeing, task: Wire): void {
  for (const { parts } of task.artifacts ?? []) takeParts(seeing, parts)
  for (const { role, ...message } of task.history ?? []) if (/agent/i.test(role)) takeQuestion(seeing, message)
  takeStatus(seeing, task.status)
}

function takeUpdate(seeing: Seeing, { artifactUpdate, statusUpdate }: Wire): void {
  if (artifactUpdate) takeParts(seeing, artifactUpdate.artifact.parts)
  if (statusUpdate) takeStatus(seeing, statusUpdate.status)
}

function takeStatus(seeing: Seeing, status: Wire): void {
  const state = stateOf(status)
  if (state === 'working') for (const { data } of status.message?.parts ?? []) takeEvent(seeing, data)
  if (state === 'input-required') takeQuestion(seeing, status.message)
  if (state === 'completed') seeing.end('done')
  if (state === 'canceled') seeing.end('cancelled')
  if (state === 'failed') seeing.end(`error ${status.message?.metadata?.code}`)
}

/** What our extension tells. */
function takeEvent(seeing: Seeing, data: Wire): void {
  if (data?.type === 'thinking') seeing.think(data.content ?? data.thinking)
  if (data?.type === 'tool_call') seeing.call(data.tool_call.id, data.tool_call)
  if (data?.type === 'tool_result') seeing.result(data.tool_result.call_id, data.tool_result.result)
  if (data?.type === 'usage.delta') seeing.useMore(data.delta.output_tokens)
}

/** Notes what is asked, and gives the answer. */
function takeQuestion(seeing: Seeing, { parts, metadata }: Wire, coin = ''): { parts: readonly object[]; metadata?: object } | undefined {
  const { type, call_id, approval_id }: Wire = parts.find(({ data }: Wire) => data?.type !== undefined)?.data ?? {}
  if (type === undefined) return undefined
  seeing.ask(call_id ?? approval_id ?? 'payment', type as Question)
  if (type === 'tool.call') return { parts: [{ data: { type: 'tool.result', call_id, result: RESULT } }] }
  if (type === 'x.approval.request') return { parts: [{ data: { type: 'x.approval.response', approval_id, approved: true } }] }
  if (metadata?.['x402.payment.status'] !== 'payment-required') return undefined
  return { parts: [{ text: 'Here' }], metadata: { 'x402.payment.status': 'payment-submitted', 'x402.payment.payload': coin } }
}

const over = (generation: Generation): Transport => ({
  name: generation.name,
  limits: generation.limits,
  talk(stage) {
    const ids: string[] = []
    const told: Update[] = []
    return {
      over: converse(stage, new Client(generation, stage.url), { generation, told, ids }),
      async again({ url, mode, seeing }) {
        const client = new Client(generation, url)
        if (mode === 'whole again') return takeTask(seeing, await client.call('get', { id: ids[0] }))
        const half = mode === 'resumed' ? firstHalf(told) : []
        for (const update of half) takeUpdate(seeing, update)
        for await (const update of client.stream('subscribe', { id: ids[0] }, half.at(-1)?.id)) {
          if (update.task) takeTask(seeing, update.task)
          takeUpdate(seeing, update)
        }
      },
    }
  },
})

export const a2a1 = over({
  name: 'A2A 1.0',
  version: '1.0',
  methods: { send: 'SendMessage', stream: 'SendStreamingMessage', get: 'GetTask', cancel: 'CancelTask', subscribe: 'SubscribeToTask' },
  message: (parts, more) => ({ messageId: randomUUID(), role: 'ROLE_USER', parts, ...more }),
  waits: (forEnd) => ({ returnImmediately: !forEnd }),
  read: (result) => result,
  limits: [
    ...LIMITS,
    { why: 'a task that is over is fetched, and subscribed to only with a cursor (A2A 1.0 §3.1.6)', modes: ['streamed again'] },
  ],
})

export const a2a03 = over({
  name: 'A2A 0.3',
  version: '0.3',
  methods: { send: 'message/send', stream: 'message/stream', get: 'tasks/get', cancel: 'tasks/cancel', subscribe: 'tasks/resubscribe' },
  message: (parts, more) => ({ kind: 'message', messageId: randomUUID(), role: 'user', parts: parts.map(part), ...more }),
  waits: (forEnd) => ({ blocking: forEnd }),
  read: (result) => ({ [KINDS[result.kind] ?? '']: result }),
  limits: LIMITS,
})
