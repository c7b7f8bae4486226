import { randomUUID } from 'node:crypto'
import { RESULT } from '../far-agent.ts'
import { CALL, DOUBLE_FUNCTION, listen, type Heard, type Inbound, type Wire } from './inbound.ts'

/** What the generations call differently. */
interface Generation {
  readonly name: string
  readonly version: string
  readonly send: string
  readonly cancel: string
  /** The header that activates extensions. */
  readonly extensions: string
  readonly message: (part: Wire, task: Wire) => object
  /** An update in the words of 1.0. */
  readonly read: (result: Wire) => Wire
  readonly state: (name: string) => string
}

const V1: Generation = {
  name: 'A2A 1.0',
  version: '1.0',
  send: 'SendStreamingMessage',
  cancel: 'CancelTask',
  extensions: 'a2a-extensions',
  message: (part, task) => ({ messageId: randomUUID(), role: 'ROLE_USER', parts: [part], ...task }),
  read: (result) => result,
  state: (name) => `TASK_STATE_${name.toUpperCase().replace('-', '_')}`,
}

const V03: Generation = {
  name: 'A2A 0.3',
  version: '0.3',
  send: 'message/stream',
  cancel: 'tasks/cancel',
  extensions: 'x-a2a-extensions',
  message: (part, task) => {
    const kind = 'text' in part ? 'text' : 'data'
    return { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind, ...part }], ...task }
  },
  read: (result) => ({ [{ task: 'task', 'artifact-update': 'artifactUpdate' }[result.kind as string] ?? 'statusUpdate']: result }),
  state: (name) => name,
}

/** The extension by which a client declares its tools, and the declaration. */
const TOOLS = 'https://uamp.dev/a2a/tools/v1'
const DECLARED = { metadata: { [TOOLS]: { tools: [DOUBLE_FUNCTION] } } }

const over = (generation: Generation): Inbound => ({
  name: generation.name,
  ...CALL,
  words: {
    tool: `declared by \`${TOOLS}\`; \`input-required\`, and the next message of the task has the result`,
    cancel: `\`${generation.cancel}\`, \`canceled\``,
    error: '`failed`',
  },
  async connect(url) {
    const headers = { 'a2a-version': generation.version, [generation.extensions]: TOOLS }
    const envelope = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params })
    const updates = async function* (part: object, task: object = {}): AsyncGenerator<Wire, void> {
      const message = generation.message(part, task)
      for await (const { result } of listen(`${url}/a2a`, envelope(generation.send, { message }), { headers }))
        yield generation.read(result)
    }
    return {
      async say(said) {
        const calls: string[] = []
        let next = updates({ text: said }, DECLARED)
        for (let text = ''; ;) {
          let last: Wire
          for await (const { artifactUpdate, statusUpdate } of next) {
            for (const part of artifactUpdate?.artifact.parts ?? []) text += part.text ?? ''
            last = statusUpdate ?? last
          }
          const { taskId, contextId, status } = last
          const asked = status.state === generation.state('input-required') ? callIn(status.message) : undefined
          if (!asked) return heard(text, calls, status.state === generation.state('failed') ? status.message.parts[0].text : undefined)
          calls.push(asked.name)
          next = updates({ data: { type: 'tool.result', call_id: asked.call_id, result: RESULT } }, { taskId, contextId })
        }
      },
      async cancel(said) {
        let cancelled: Promise<unknown> | undefined
        for await (const { artifactUpdate, statusUpdate } of updates({ text: said })) {
          if (artifactUpdate && !cancelled) {
            const body = JSON.stringify(envelope(generation.cancel, { id: artifactUpdate.taskId }))
            cancelled = fetch(`${url}/a2a`, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body })
          }
          if (statusUpdate?.status.state === generation.state('canceled')) {
            await cancelled
            return statusUpdate.status.state
          }
        }
        throw new Error('It ended by itself')
      },
    }
  },
})

function callIn({ parts }: Wire): Wire {
  return parts.flatMap(({ data }: Wire) => (data?.type === 'tool.call' ? [data] : []))[0]
}

function heard(text: string, calls: readonly string[], error: string | undefined): Heard {
  return { text, calls, error }
}

export const a2a1 = over(V1)
export const a2a03 = over(V03)
