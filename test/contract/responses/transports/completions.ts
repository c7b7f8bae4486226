import { json, sse, Told, type Wire } from '../../../support/raw.ts'
import { RESULT } from '../shapes.ts'
import {
  AGAIN,
  answers,
  CANCELS,
  cancelling,
  denied,
  ERRORS,
  FUNCTION,
  SPEECH_FIRST,
  wordsLast,
  type Stage,
  type Transport,
} from '../transport.ts'
import { takeItem } from './events.ts'

export const completions: Transport = {
  name: 'Chat Completions',
  limits: [
    { why: 'a request is the whole conversation, and nothing of it can be fetched again', modes: AGAIN },
    { why: 'an approval has no place in the conversation: it is denied', shapes: ['a question for approval'], sees: denied },
    {
      why: 'the agent is run again with the answer, and says again what came before the question',
      shapes: ["text, then a call of the client's tool"],
      sees: ({ text }) => ({ text: `Let me see. ${text}` }),
    },
    {
      why: 'a stream that must be paid for ends in an error, and the paid request is a new one',
      shapes: ['text, then a question for payment'],
      modes: ['streamed'],
      sees: ({ text }) => ({ text: `One thing. ${text}` }),
    },
    { why: 'the words of speech are in a field of their own', shapes: SPEECH_FIRST, modes: ['whole'], sees: wordsLast },
    { why: 'an error is a status, and has no answer beside it', shapes: ERRORS, modes: ['whole'], sees: () => ({ text: '', usage: 0 }) },
    { why: 'an error is the end of the stream, before the usage', shapes: ERRORS, sees: () => ({ usage: 0 }) },
    { why: 'the answer ends with its question: there is nothing to cancel', shapes: ['cancelled while a question waits'] },
    { why: 'a client cancels by closing the connection', shapes: CANCELS, sees: () => ({ end: 'left' }) },
    { why: 'what is not streamed is not there before its end', shapes: CANCELS, modes: ['whole'], sees: () => ({ text: '' }) },
  ],
  talk: (stage) => ({ over: live(stage) }),
}

async function live(stage: Stage): Promise<void> {
  const { seeing, prompt, shape } = stage
  const messages: object[] = [{ role: 'user', content: prompt }]
  let headers = {}
  for (;;) {
    const leave = new AbortController()
    const left = cancelling(stage, () => leave.abort())
    const body = { model: 'shapes', messages, tools: [FUNCTION], ...(shape.speaks && SPOKEN) }
    try {
      const calls = await ask(stage, body, { headers, signal: leave.signal })
      if (calls.length > 0 && answers(stage)) {
        messages.push({ role: 'assistant', content: null, tool_calls: calls })
        messages.push(...calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: RESULT })))
        continue
      }
      return seeing.end('done')
    } catch (thrown) {
      if (!(thrown instanceof Told)) throw thrown
      if (thrown.code === 'payment_required' && seeing.ask('payment', 'payment.required') && answers(stage)) {
        headers = { 'x-payment': stage.coin }
        continue
      }
      if (!leave.signal.aborted) return seeing.end(`error ${thrown.code}`)
      await stage.stopped
      return seeing.end('left')
    } finally {
      if (leave.signal.aborted) await left
    }
  }
}

const SPOKEN = { modalities: ['text', 'audio'], audio: { voice: 'v', format: 'pcm16' } }

interface Sent {
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

/** One request. Gives the calls that it ends with. */
async function ask({ url, streamed, seeing }: Stage, body: object, sent: Sent): Promise<Wire[]> {
  const path = `${url}/v1/chat/completions`
  const calls: Wire[] = []
  const take = (said: Wire): void => {
    seeing.say(said.content)
    seeing.think(said.reasoning_content)
    seeing.say(said.audio?.transcript)
    if (said.audio?.data) seeing.hear(said.audio.data)
    for (const item of said.content_items ?? []) takeItem(seeing, item)
    for (const { index, ...call } of said.tool_calls ?? []) {
      if (index !== undefined && calls[index]) calls[index].function.arguments += call.function.arguments
      else calls.push(call)
    }
  }
  if (!streamed) {
    const { choices, usage } = await json(path, body, sent)
    take(choices[0].message)
    seeing.use(usage.completion_tokens)
  } else {
    let finished = false
    let last = ''
    for await (const { data } of sse(path, { ...body, stream: true, stream_options: { include_usage: true } }, sent)) {
      last = data
      if (data === '[DONE]') break
      const { error, choices, usage }: Wire = JSON.parse(data)
      if (error) throw new Told(error.code, error.message)
      take(choices[0]?.delta ?? {})
      finished ||= choices[0]?.finish_reason != null
      if (usage) seeing.use(usage.completion_tokens)
    }
    if (last !== '[DONE]' || !finished) throw new Told('no end')
  }
  for (const { id } of calls) seeing.ask(id, 'tool.call')
  return calls
}
