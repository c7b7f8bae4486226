import { connect, says } from '../../openai/realtime-wire.ts'
import { RESULT } from '../far-agent.ts'
import { CALL, DOUBLE, DOUBLE_FUNCTION, listen, type Inbound, type Wire } from './inbound.ts'

export const completions: Inbound = {
  name: 'Chat Completions',
  ...CALL,
  words: { tool: '`tool_calls`, and the next request has the result', cancel: 'the connection is closed', error: '`error` in the stream' },
  async connect(url) {
    const ask = (messages: readonly object[]) =>
      listen(`${url}/v1/chat/completions`, { model: 'far', stream: true, tools: [DOUBLE_FUNCTION], messages })
    return {
      async say(said) {
        const messages: object[] = [{ role: 'user', content: said }]
        const called: string[] = []
        for (let text = ''; ;) {
          let error: string | undefined
          const calls: Wire[] = []
          for await (const chunk of ask(messages)) {
            error ??= chunk.error?.message
            const { content, tool_calls = [] } = chunk.choices?.[0]?.delta ?? {}
            text += content ?? ''
            for (const { index, ...piece } of tool_calls) {
              if (calls[index]) calls[index].function.arguments += piece.function.arguments
              else calls[index] = piece
            }
          }
          if (calls.length === 0 || error !== undefined) return { text, calls: called, error }
          called.push(...calls.map((call) => call.function.name as string))
          messages.push({ role: 'assistant', content: null, tool_calls: calls })
          messages.push(...calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: RESULT })))
        }
      },
      async cancel(said) {
        for await (const { choices } of ask([{ role: 'user', content: said }])) if (choices[0]?.delta.content) return 'it has left'
        throw new Error('It ended by itself')
      },
    }
  },
}

export const responses: Inbound = {
  name: 'Responses',
  ...CALL,
  words: {
    tool: '`function_call`, and the next request has the `function_call_output`',
    cancel: 'the connection is closed',
    error: '`response.failed`',
  },
  async connect(url) {
    const ask = (body: object) =>
      listen(`${url}/v1/responses`, { model: 'far', stream: true, tools: [{ type: 'function', ...DOUBLE }], ...body })
    return {
      async say(said) {
        const called: string[] = []
        let asked: object = { input: said }
        for (let text = ''; ;) {
          let last: Wire
          for await (const event of ask(asked)) {
            if (event.type === 'response.output_text.delta') text += event.delta
            last = event
          }
          const { id, output, error } = last.response
          const calls: Wire[] = output.filter(({ type }: Wire) => type === 'function_call')
          if (calls.length === 0) return { text, calls: called, error: error?.message }
          called.push(...calls.map(({ name }) => name as string))
          const input = calls.map(({ call_id }) => ({ type: 'function_call_output', call_id, output: RESULT }))
          asked = { previous_response_id: id, input }
        }
      },
      async cancel(said) {
        for await (const { type } of ask({ input: said })) if (type === 'response.output_text.delta') return 'it has left'
        throw new Error('It ended by itself')
      },
    }
  },
}

export const realtime: Inbound = {
  name: 'Realtime, text',
  ...CALL,
  words: {
    tool: '`function_call` item, `function_call_output` item',
    cancel: '`response.cancel`, `response.done` with status `cancelled`',
    error: '`response.done` with status `failed`',
  },
  async connect(url) {
    const wire = await connect(url)
    const session = { type: 'realtime', output_modalities: ['text'], tools: [{ type: 'function', ...DOUBLE }] }
    await wire.ask({ type: 'session.update', session }, 'session.updated')
    return {
      async say(said) {
        const called: string[] = []
        let before: object[] = [says(said)]
        for (;;) {
          const events = await wire.respond(...before)
          const { output, status_details: details } = events.at(-1)?.['response'] as Wire
          const calls: Wire[] = output.filter(({ type }: Wire) => type === 'function_call')
          const text = events.map(({ type, delta }) => (type === 'response.output_text.delta' ? (delta as string) : '')).join('')
          if (calls.length === 0) return { text, calls: called, error: details?.error?.message }
          called.push(...calls.map(({ name }) => name as string))
          before = calls.map(({ call_id }) => ({
            type: 'conversation.item.create',
            item: { type: 'function_call_output', call_id, output: RESULT },
          }))
        }
      },
      async cancel(said) {
        wire.send(says(said))
        await wire.ask({ type: 'response.create' }, 'response.output_text.delta')
        const { response } = await wire.ask({ type: 'response.cancel' }, 'response.done')
        return response.status
      },
    }
  },
}
