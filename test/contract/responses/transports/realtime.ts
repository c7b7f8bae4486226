import { connect, says, type Heard } from '../../../openai/realtime-wire.ts'
import type { Seeing } from '../seen.ts'
import { RESULT } from '../shapes.ts'
import { AGAIN, answers, cancelling, denied, TOOL, type Stage, type Transport } from '../transport.ts'
import { takeItem } from './events.ts'

export const realtime: Transport = {
  name: 'Realtime',
  limits: [
    { why: 'Realtime always streams', modes: ['whole'] },
    { why: 'nothing of a Realtime session is kept', modes: AGAIN },
    { why: "tools of the agent's own are not shown", sees: () => ({ calls: [] }) },
    { why: 'nobody can be asked for an approval: it is denied', shapes: ['a question for approval'], sees: denied },
    {
      why: 'the response has ended with its question',
      shapes: ['cancelled while a question waits'],
      sees: () => ({ end: 'done' }),
    },
  ],
  talk: (stage) => ({ over: live(stage) }),
}

async function live(stage: Stage): Promise<void> {
  const { url, seeing, prompt, shape } = stage
  const wire = await connect(url, { path: '/v1/realtime?model=shapes' })
  stage.after(() => wire.socket.terminate())
  const session = { type: 'realtime', output_modalities: [shape.speaks ? 'audio' : 'text'], tools: [{ type: 'function', ...TOOL }] }
  await wire.ask({ type: 'session.update', session }, 'session.updated')
  wire.send(says(prompt))
  wire.send({ type: 'response.create' })
  const cancelled = cancelling(stage, () => wire.send({ type: 'response.cancel' }))
  for (;;) {
    const event = await wire.next(() => true)
    take(seeing, event)
    if (event.type === 'payment.required' && answers(stage)) {
      wire.send({ type: 'payment.submit', payment: { scheme: 'token', token: stage.coin } })
    }
    if (event.type !== 'response.done') continue
    const calls = callsIn(event)
    if (calls.length === 0 || !answers(stage)) break
    seeing.goOn()
    seeing.begin()
    for (const call_id of calls) {
      wire.send({ type: 'conversation.item.create', item: { type: 'function_call_output', call_id, output: RESULT } })
    }
    wire.send({ type: 'response.create' })
  }
  await cancelled
  // What is sent after the end is refused, and the connection lives.
  if (shape.cancel === 'after the end') seeing.refused = (await wire.next('error'))['error'].code
}

const callsIn = ({ response }: Heard): string[] =>
  (response.output as Heard[]).flatMap((item) => (item.type === 'function_call' ? [item['call_id'] as string] : []))

function take(seeing: Seeing, event: Heard): void {
  switch (event.type) {
    case 'response.output_text.delta':
    case 'response.output_audio_transcript.delta':
      return seeing.say(event['delta'])
    case 'response.output_audio.delta':
      return seeing.hear(event['delta'])
    // What Realtime has no event for comes as the UAMP event that it is.
    case 'response.delta':
      return takeItem(seeing, event['delta'])
    case 'thinking':
      return seeing.think(event['content'])
    case 'payment.required':
      return void seeing.ask('payment', event.type)
    case 'response.done': {
      const { status, status_details: details, output, usage } = event['response']
      for (const id of callsIn(event)) seeing.ask(id, 'tool.call')
      const parts = (output as Heard[]).flatMap(({ content = [] }) => content as Heard[])
      seeing.whole(parts.map(({ text, transcript }) => text ?? transcript ?? '').join(''))
      seeing.useMore(usage?.output_tokens)
      return seeing.end(status === 'completed' ? 'done' : status === 'failed' ? `error ${details.error.code}` : status)
    }
    default:
  }
}
