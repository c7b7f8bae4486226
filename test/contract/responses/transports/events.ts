import type { ContentItem } from '../../../../src/protocol/content.ts'
import { isEnd } from '../../../support/talk.ts'
import { overSse, overWebSocket, type Connect, type Heard, type Wire } from '../../../support/wire.ts'
import type { Seeing } from '../seen.ts'
import { RESULT } from '../shapes.ts'
import { answers, cancelling, firstHalf, FUNCTION, WHOLE, type Reading, type Transport } from '../transport.ts'

/** A content item, or a piece of one. */
export function takeItem(seeing: Seeing, item: ContentItem): void {
  if (item.type === 'text') seeing.say(item.text)
  else if (item.type === 'thinking') seeing.think(item.thinking)
  else if (item.type === 'tool_call') seeing.call(item.tool_call.id, item.tool_call)
  else if (item.type === 'tool_result') seeing.result(item.tool_result.call_id, item.tool_result.result)
  else seeing.show()
}

const textIn = (output: readonly ContentItem[]): string => output.map((item) => (item.type === 'text' ? item.text : '')).join('')

/** Takes one event. Gives the answer, where it is a question. */
function take(seeing: Seeing, event: Heard, coin = ''): object | undefined {
  switch (event.type) {
    case 'response.delta':
      takeItem(seeing, event['delta'])
      return undefined
    case 'thinking':
      seeing.think(event['content'])
      return undefined
    case 'audio.delta':
      seeing.hear(event['audio'])
      return undefined
    case 'transcript.delta':
      seeing.say(event['transcript'])
      return undefined
    case 'usage.delta':
      seeing.useMore(event['delta'].output_tokens)
      return undefined
    case 'tool.call':
      seeing.ask(event['call_id'], event.type)
      return { type: 'tool.result', call_id: event['call_id'], result: RESULT }
    case 'x.approval.request':
      seeing.ask(event['approval_id'], event.type)
      return { type: 'x.approval.response', approval_id: event['approval_id'], approved: true }
    case 'payment.required':
      seeing.ask('payment', event.type)
      return { type: 'payment.submit', payment: { scheme: 'token', token: coin } }
    case 'response.done': {
      const { output, usage } = event['response']
      seeing.use(usage?.output_tokens)
      if (!output.some(({ type }: ContentItem) => type === 'audio')) seeing.whole(textIn(output))
      seeing.end('done')
      return undefined
    }
    case 'response.cancelled':
      seeing.whole(textIn(event['partial_output'] ?? []))
      seeing.end('cancelled')
      return undefined
    case 'response.error':
      seeing.end(`error ${event['error'].code}`)
      return undefined
    default:
      return undefined
  }
}

interface Answering {
  readonly coin?: string
  readonly answer?: (given: object) => Promise<unknown>
}

/** Reads to the end of the response, and answers what is asked if it is to. */
async function read(wire: Wire, seeing: Seeing, { coin, answer }: Answering = {}): Promise<void> {
  for (;;) {
    const event = await wire.next((each) => each['response_id'] !== undefined)
    const given = take(seeing, event, coin)
    if (given && answer) await answer(given)
    if (isEnd(event)) return
  }
}

const over = (name: string, connect: Connect): Transport => ({
  name,
  limits: [{ why: 'events are always streamed', modes: WHOLE }],
  talk(stage) {
    let session = ''
    let told: readonly Heard[] = []
    return { over: live(), again }

    async function live(): Promise<void> {
      const wire = await connect(stage.url)
      stage.after(() => wire.close())
      told = wire.heard
      session = await wire.open({ session: { modalities: ['text', 'audio'], tools: [FUNCTION] } })
      await wire.send({ type: 'input.text', text: stage.prompt })
      await wire.send({ type: 'response.create' })
      const cancelled = cancelling(stage, () => wire.send({ type: 'response.cancel' }))
      await read(wire, stage.seeing, answers(stage) ? { coin: stage.coin, answer: (given) => wire.send(given) } : {})
      await cancelled
    }

    async function again({ url, mode, seeing, after }: Reading): Promise<void> {
      const half = mode === 'resumed' ? firstHalf(told.filter((event) => event['response_id'] !== undefined)) : []
      for (const event of half) take(seeing, event)
      const wire = await connect(url)
      after(() => wire.close())
      await wire.follow(session, half.at(-1)?.['seq'] ?? 0)
      await read(wire, seeing)
    }
  },
})

export const eventsWebSocket = over('UAMP events, WebSocket', overWebSocket)
export const eventsSse = over('UAMP events, SSE', overSse)
