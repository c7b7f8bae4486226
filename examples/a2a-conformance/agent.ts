import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, text, type ContentItem, type Draft, type Turn } from 'uamp'

type Scenario = (turn: Turn) => AsyncIterable<Draft> | Iterable<Draft>

/** What the A2A project's test kit wants done, by the beginning of the message's id. Of two that fit, the first is meant. */
const SCENARIOS: readonly (readonly [prefix: string, scenario: Scenario])[] = [
  ['tck-complete-task', () => [text('Hello from TCK')]],
  ['tck-artifact-text', () => [text('Generated text content')]],
  ['tck-artifact-file-url', () => [file({ url: 'https://example.com/output.txt' })]],
  ['tck-artifact-file', () => [file(btoa('tck'))]],
  ['tck-artifact-data', () => [file(btoa('{"key":"value","count":42}'), { filename: 'data.json', mime_type: 'application/json' })]],
  ['tck-message-response', () => [{ type: 'x.custom', name: 'a2a.message', value: { parts: [{ text: 'Direct message response' }] } }]],
  ['tck-input-required', () => [stop('input_required')]],
  ['tck-reject-task', () => [text('rejected'), stop('rejected')]],
  ['tck-stream-001', () => [text('Stream hello from TCK')]],
  ['tck-stream-002', () => []],
  ['tck-stream-003', () => [text('Stream task lifecycle')]],
  ['tck-stream-ordering-001', () => [text('Ordered output')]],
  ['tck-stream-artifact-text', () => [text('Streamed text content')]],
  ['tck-stream-artifact-file', () => [file(btoa('tck'))]],
  ['tck-stream-artifact-chunked', () => [text('chunk-1 '), text('chunk-2')]],
  ['test-resubscribe-message-id', longTask],
  ['tck-', ({ messages }) => [text(`You said: ${messages.at(-1)?.content ?? ''}`)]],
  // The kit for 0.3 has names of all kinds, and goes on with its tasks or cancels them: none may be over.
  ['', () => [text('What else?'), stop('input_required')]],
]

/** The kit waits for streams as long as this variable says, in seconds. The task that it comes back to takes twice as long. */
const TIMEOUT_S = Number(process.env['TCK_STREAMING_TIMEOUT'] ?? 2)

async function* longTask({ signal }: Turn): AsyncGenerator<Draft> {
  // Until it has said anything it could still be a message.
  yield { type: 'progress', target: 'response', stage: 'working' }
  await sleep(TIMEOUT_S * 2000, undefined, { signal })
  yield text('Done')
}

function file(content: string | { url: string }, { filename = 'output.txt', mime_type = 'text/plain' } = {}): Draft {
  const item = { type: 'file', file: content, filename, mime_type } satisfies ContentItem
  return { type: 'response.delta', delta: item }
}

/** The end, and why: without it the task is completed. */
function stop(reason: 'input_required' | 'rejected'): Draft {
  return { type: 'response.done', response: { id: '', status: 'completed', output: [], extensions: { uamp: { stop_reason: reason } } } }
}

export const conformance = defineAgent(
  'a2a-conformance',
  async function* (turn) {
    const { messageId = '' } = (turn.config.extensions?.['a2a'] ?? {}) as { readonly messageId?: string }
    const [, scenario] = SCENARIOS.find(([prefix]) => messageId.startsWith(prefix)) ?? []
    if (scenario) yield* scenario(turn)
  },
  {
    description: "Does what the A2A project's test kit asks for",
    // It may answer with a message in place of a task: what comes first is waited for.
    capabilities: { modalities: ['text', 'file'], extensions: { a2a: { messages: true } } },
  },
)
