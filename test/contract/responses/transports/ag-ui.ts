import { randomUUID } from 'node:crypto'
import { messagesOf, type Heard } from '../../../ag-ui/wire.ts'
import { sse, Told, type Wire } from '../../../support/raw.ts'
import type { Seeing } from '../seen.ts'
import { RESULT } from '../shapes.ts'
import { AGAIN, answers, CANCELS, cancelling, firstHalf, TOOL, WHOLE, type Stage, type Transport } from '../transport.ts'

export const agUi: Transport = {
  name: 'AG-UI',
  limits: [
    { why: 'a run is always streamed', modes: WHOLE },
    { why: 'what is 402 is no run', shapes: ['a question for payment'], modes: AGAIN, sees: () => ({ questions: [] }) },
    { why: 'a front end cancels by closing the connection', shapes: CANCELS, modes: ['streamed'], sees: () => ({ end: 'left' }) },
    { why: 'the run has ended with its question', shapes: ['cancelled while a question waits'], sees: () => ({ end: 'done' }) },
  ],
  talk(stage) {
    const runs: Runs = new Map()
    return {
      over: live(stage, runs),
      async again({ url, mode, seeing }) {
        for (const [runId, told] of runs) {
          seeing.goOn()
          const half = mode === 'resumed' ? firstHalf(told) : []
          for (const { event } of half) take(seeing, event)
          const cursor = half.at(-1)?.id
          const headers = cursor === undefined ? {} : { 'last-event-id': cursor }
          for await (const { data } of sse(`${url}/ag-ui/runs/${runId}`, undefined, { headers })) take(seeing, JSON.parse(data))
        }
      },
    }
  },
}

/** What was told of each run, with the `id:` that each event had. */
type Runs = Map<string, { readonly id: string | undefined; readonly event: Heard }[]>

async function live(stage: Stage, runs: Runs): Promise<void> {
  const { url, seeing, prompt, shape } = stage
  const threadId = randomUUID()
  const messages: object[] = [{ id: randomUUID(), role: 'user', content: prompt }]
  let headers = {}
  let resume: object[] | undefined
  for (;;) {
    const leave = new AbortController()
    // A run ends with its question: then there is nothing to close.
    void cancelling(stage, () => shape.cancel === 'while a question waits' || leave.abort())
    const runId = randomUUID()
    const body = { threadId, runId, protocolVersion: '1.0', tools: [TOOL], messages, ...(resume && { resume }) }
    const told: { id: string | undefined; event: Heard }[] = []
    runs.set(runId, told)
    try {
      for await (const { id, data } of sse(`${url}/ag-ui`, body, { headers, signal: leave.signal })) {
        const event = JSON.parse(data) as Heard
        told.push({ id, event })
        take(seeing, event)
      }
      const { pendingToolCallIds: pending = [], interrupts = [] } = told.at(-1)?.event['outcome'] ?? {}
      if (!answers(stage) || pending.length + interrupts.length === 0) return
      seeing.goOn()
      messages.push(...messagesOf(told.map(({ event }) => event)))
      for (const id of pending as string[]) messages.push({ id: randomUUID(), role: 'tool', toolCallId: id, content: RESULT })
      resume = interrupts.length > 0 ? interrupts.map((each: Wire) => resolved(each, stage.coin)) : undefined
    } catch (thrown) {
      if (!(thrown instanceof Told)) throw thrown
      if (thrown.code === 'payment_required' && seeing.ask('payment', 'payment.required')) {
        headers = { 'x-payment': stage.coin }
        runs.delete(runId)
        continue
      }
      if (!leave.signal.aborted) return seeing.end(`error ${thrown.code}`)
      await stage.stopped
      return seeing.end('left')
    }
  }
}

const resolved = ({ id, reason }: Wire, coin: string): object => {
  const payload = reason === 'uamp:payment_required' ? { payment_token: coin } : { approved: true }
  return { interruptId: id, status: 'resolved', payload }
}

function take(seeing: Seeing, event: Wire): void {
  switch (event.type) {
    case 'TEXT_MESSAGE_CONTENT':
      return seeing.say(event.delta)
    case 'REASONING_MESSAGE_CONTENT':
      return seeing.think(event.delta)
    case 'ACTIVITY_SNAPSHOT':
      return event.activityType === 'uamp.content' ? seeing.show() : undefined
    case 'CUSTOM':
      return event.name === 'uamp.audio.delta' ? seeing.hear(event.value.audio) : undefined
    case 'TOOL_CALL_START':
      return seeing.call(event.toolCallId, { name: event.toolCallName })
    case 'TOOL_CALL_ARGS':
      return seeing.call(event.toolCallId, { arguments: event.delta })
    case 'TOOL_CALL_RESULT':
      return seeing.result(event.toolCallId, event.content)
    case 'RUN_ERROR':
      use(seeing, event)
      return seeing.end(`error ${event.code}`)
    case 'RUN_FINISHED': {
      const { type, pendingToolCallIds: pending = [], interrupts = [] } = event.outcome
      for (const id of pending as string[]) seeing.ask(id, 'tool.call')
      for (const { id, reason } of interrupts) seeing.ask(id, reason === 'confirmation' ? 'x.approval.request' : 'payment.required')
      use(seeing, event)
      return seeing.end(type === 'success' ? 'done' : type)
    }
    default:
  }
}

function use(seeing: Seeing, { usage = [] }: Wire): void {
  for (const { outputTokens } of usage) seeing.useMore(outputTokens)
}
