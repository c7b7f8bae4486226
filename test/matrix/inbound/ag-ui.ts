import { randomUUID } from 'node:crypto'
import { RESULT } from '../far-agent.ts'
import { CALL, DOUBLE, listen, type Inbound, type Wire } from './inbound.ts'

export const agUi: Inbound = {
  name: 'AG-UI',
  ...CALL,
  words: { tool: 'the run ends with the call, and the next one has the result', cancel: 'the connection is closed', error: '`RUN_ERROR`' },
  async connect(url) {
    const threadId = randomUUID()
    const run = (messages: readonly object[]) =>
      listen(`${url}/ag-ui`, {
        threadId,
        runId: randomUUID(),
        protocolVersion: '1.0',
        state: {},
        context: [],
        forwardedProps: {},
        tools: [DOUBLE],
        messages,
      })
    const user = (content: string) => ({ id: randomUUID(), role: 'user', content })
    return {
      async say(said) {
        const messages: object[] = [user(said)]
        const called: string[] = []
        for (let text = ''; ;) {
          const calls = new Map<string, Wire>()
          let last: Wire
          for await (const event of run(messages)) {
            if (event.type === 'TEXT_MESSAGE_CONTENT') text += event.delta
            if (event.type === 'TOOL_CALL_START')
              calls.set(event.toolCallId, { id: event.parentMessageId, name: event.toolCallName, arguments: '' })
            if (event.type === 'TOOL_CALL_ARGS') calls.get(event.toolCallId).arguments += event.delta
            last = event
          }
          const pending: string[] = last.outcome?.pendingToolCallIds ?? []
          if (pending.length === 0) return { text, calls: called, error: last.type === 'RUN_ERROR' ? last.message : undefined }
          for (const id of pending) {
            const { id: message, ...call } = calls.get(id)
            called.push(call.name)
            messages.push({ id: message, role: 'assistant', toolCalls: [{ id, type: 'function', function: call }] })
            messages.push({ id: randomUUID(), role: 'tool', toolCallId: id, content: RESULT })
          }
        }
      },
      async cancel(said) {
        for await (const { type } of run([user(said)])) if (type === 'TEXT_MESSAGE_CONTENT') return 'it has left'
        throw new Error('It ended by itself')
      },
    }
  },
}
