import { json, Line, sse, Told, type Sending, type Wire } from '../../../support/raw.ts'
import type { Seeing } from '../seen.ts'
import { RESULT } from '../shapes.ts'
import {
  AGAIN,
  answers,
  cancelling,
  ERRORS,
  firstHalf,
  SPEECH,
  SPEECH_FIRST,
  TOOL,
  WHOLE,
  wordsLast,
  type Limit,
  type Reading,
  type Stage,
  type Transport,
} from '../transport.ts'
import { takeItem } from './events.ts'

/** How one request is answered, event by event; or, not streamed, as the response at its end. */
type Request = (body: object, sending: Sending) => AsyncIterable<Wire>

/** What was told of each response. */
type Responses = Map<string, Wire[]>

const TERMINAL = new Set(['completed', 'failed', 'incomplete', 'cancelled'])

/** What the response holds at its end, but for what its stream said before. */
function takeOutput(seeing: Seeing, response: Wire, before: 'streamed' | 'nothing'): object[] {
  const given: object[] = []
  let whole = ''
  for (const item of response.output) {
    for (const part of item.content ?? []) whole += part.text ?? ''
    if (before === 'nothing') for (const part of item.content ?? []) seeing.say(part.text)
    for (const part of item.type === 'reasoning' ? item.summary : []) if (before === 'nothing') seeing.think(part.text)
    if (item.type === 'image_generation_call') seeing.show()
    for (const each of item.uamp?.content_items ?? []) if (before === 'nothing' && each.type !== 'audio') takeItem(seeing, each)
    if (item.type === 'mcp_call') {
      seeing.call(item.id, item)
      if (item.output !== null) seeing.result(item.id, item.output)
    }
    if (item.type === 'function_call') {
      seeing.ask(item.call_id, 'tool.call')
      given.push({ type: 'function_call_output', call_id: item.call_id, output: RESULT })
    }
    if (item.type === 'mcp_approval_request') {
      seeing.ask(item.id, 'x.approval.request')
      given.push({ type: 'mcp_approval_response', approval_request_id: item.id, approve: true })
    }
  }
  if (isUnpaid(response)) seeing.ask('payment', 'payment.required')
  if (before === 'streamed') seeing.whole(whole)
  if (response.usage) seeing.useMore(response.usage.output_tokens)
  seeing.end(endOf(response))
  return given
}

/** A stream that has begun cannot be 402 any more. */
const isUnpaid = ({ error }: Wire): boolean => error?.code === 'payment_required'

function endOf({ status, error }: Wire): string {
  if (status === 'completed') return 'done'
  if (status === 'failed') return `error ${error.code}`
  return status
}

function takeEvent(seeing: Seeing, event: Wire): void {
  if (event.type === 'response.output_text.delta') seeing.say(event.delta)
  if (event.type === 'response.reasoning_summary_text.delta') seeing.think(event.delta)
  if (event.type === 'response.audio.delta') seeing.hear(event.delta)
  if (event.type === 'error') throw new Told(event.error?.code ?? event.code, JSON.stringify(event))
}

const isLast = ({ type }: Wire): boolean => ['response.completed', 'response.failed', 'response.incomplete'].includes(type)

/** One prompt, over whatever carries it: as many requests as there are questions. Gives the ids of their responses. */
async function converse(stage: Stage, request: Request, told: Responses): Promise<void> {
  const { seeing, prompt, shape } = stage
  // Only what runs in the background can be cancelled: the others end when their client leaves.
  const common = { model: 'shapes', tools: [{ type: 'function', ...TOOL }], ...(shape.cancel && { background: true }) }
  const cancelled = cancelling(stage, () => cancel(stage, told))
  let body: object = { ...common, input: prompt }
  let sending: Sending = {}
  for (;;) {
    let id: string | undefined
    let last: Wire
    try {
      seeing.begin()
      for await (const event of request(body, sending)) {
        id ??= event.response?.id as string
        if (!told.has(id)) told.set(id, [])
        told.get(id)?.push(event)
        seeing.wake()
        takeEvent(seeing, event)
        if (isLast(event)) last = event
      }
    } catch (thrown) {
      if (!(thrown instanceof Told)) throw thrown
      if (thrown.code !== 'payment_required' || !seeing.ask('payment', 'payment.required') || !answers(stage)) {
        return seeing.end(`error ${thrown.code}`)
      }
      sending = { headers: { 'x-payment': stage.coin } }
      continue
    }
    if (!last) return seeing.end('no end')
    const { response } = last
    const given = takeOutput(seeing, response, stage.streamed ? 'streamed' : 'nothing')
    if (isUnpaid(response) && answers(stage) && !sending.headers) {
      seeing.goOn()
      sending = { headers: { 'x-payment': stage.coin } }
      continue
    }
    if (given.length === 0 || !answers(stage)) break
    seeing.goOn()
    body = { ...common, previous_response_id: response.id, input: given }
  }
  await cancelled
}

async function cancel({ url, seeing }: Stage, told: Responses): Promise<void> {
  await seeing.when(() => told.size > 0)
  await json(`${url}/v1/responses/${[...told.keys()].at(-1)}/cancel`, {})
}

async function again({ url, mode, seeing }: Reading, told: Responses): Promise<void> {
  for (const [id, events] of told) {
    const path = `${url}/v1/responses/${id}`
    seeing.goOn()
    seeing.begin()
    if (mode === 'whole again') {
      takeOutput(seeing, await json(path), 'nothing')
      continue
    }
    const half = mode === 'resumed' ? firstHalf(events) : []
    for (const event of half) takeEvent(seeing, event)
    const after = half.length > 0 ? `&starting_after=${half.at(-1).sequence_number}` : ''
    for await (const { data } of sse(`${path}?stream=true${after}`)) {
      const event: Wire = JSON.parse(data)
      takeEvent(seeing, event)
      if (isLast(event)) takeOutput(seeing, event.response, 'streamed')
    }
  }
}

const LIMITS: readonly Limit[] = [
  {
    why: 'a stream that must be paid for fails, and the paid request is a new one',
    shapes: ['text, then a question for payment'],
    modes: ['streamed', ...AGAIN],
    sees: ({ text }) => ({ text: `One thing. ${text}` }),
  },
  {
    why: 'the response has ended with its question, and stays as it is',
    shapes: ['cancelled while a question waits'],
    sees: () => ({ end: 'done' }),
  },
  { why: 'the words of speech are an item that is told when the speech is complete', shapes: SPEECH_FIRST, sees: wordsLast },
]

export const responses: Transport = {
  name: 'Responses',
  limits: [
    ...LIMITS,
    { why: 'what is 402 is no response', shapes: ['a question for payment'], modes: AGAIN, sees: () => ({ questions: [] }) },
    { why: 'what fails before the first word is a status, and no response', shapes: ['an error before the first word'], modes: AGAIN },
    { why: 'an error is a status, and has no answer beside it', shapes: ERRORS, modes: ['whole'], sees: () => ({ text: '', usage: 0 }) },
    { why: 'sound that is only streamed is not kept', shapes: SPEECH, modes: WHOLE, sees: () => ({ sound: 0 }) },
  ],
  talk(stage) {
    const told: Responses = new Map()
    return { over: converse(stage, stage.streamed ? streaming(stage) : whole(stage), told), again: (reading) => again(reading, told) }
  },
}

const streaming = ({ url }: Stage): Request =>
  async function* (body, sending) {
    for await (const { data } of sse(`${url}/v1/responses`, { ...body, stream: true }, sending)) yield JSON.parse(data)
  }

/** Of what runs in the background, the client asks until it is over. */
const whole = ({ url }: Stage): Request =>
  async function* (body, sending) {
    let response = await json(`${url}/v1/responses`, body, sending)
    yield { type: 'begun', response }
    while (!TERMINAL.has(response.status)) response = await json(`${url}/v1/responses/${response.id}`)
    yield { type: 'response.completed', response }
  }

export const responsesSocket: Transport = {
  name: 'Responses, WebSocket',
  limits: [
    ...LIMITS,
    { why: 'a socket always streams', modes: ['whole'] },
    { why: 'what is kept is read over HTTP, as that of Responses', modes: AGAIN },
  ],
  talk(stage) {
    const talking = async (): Promise<void> => {
      // One socket for all requests; who pays, does so in a header.
      let line: Line | undefined
      const request: Request = async function* (body, { headers }) {
        if (headers || !line) line = await Line.open(`${stage.url}/v1/responses`, stage, headers)
        line.send({ type: 'response.create', ...body })
        for (const messages = line.messages(); ;) {
          const { value } = await messages.next()
          yield value
          if (isLast(value)) return
        }
      }
      await converse(stage, request, new Map())
    }
    return { over: talking() }
  },
}
