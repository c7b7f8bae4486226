import { HttpAgent as Agent1 } from '@ag-ui/client'
import type * as AgUi045 from 'ag-ui-045'
import type * as AgUi052 from 'ag-ui-052'
import { HttpAgent as Agent057 } from 'ag-ui-057'
import { HttpAgent as Agent059 } from 'ag-ui-059'
import { createRequire } from 'node:module'
import { onTestFinished, vi } from 'vitest'

// As modules they cannot apply a patch in Node: `fast-json-patch` has no named exports there.
const require = createRequire(import.meta.url)
const { HttpAgent: Agent045 } = require('ag-ui-045') as typeof AgUi045
const { HttpAgent: Agent052 } = require('ag-ui-052') as typeof AgUi052

/** What is used of a client, which every version has. */
export interface Client {
  messages: { id: string; role: string; content?: unknown; toolCalls?: { id: string }[] }[]
  state: unknown
  addMessage(message: object): void
  runAgent(parameters?: object, subscriber?: object): Promise<{ newMessages: Client['messages'] }>
  abortRun(): void
}

type Make = new (config: { url: string; threadId?: string; headers?: Record<string, string> }) => unknown

export const VERSIONS: readonly { readonly version: string; readonly Agent: Make; readonly interrupts: boolean }[] = [
  { version: '1.0.0', Agent: Agent1, interrupts: true },
  { version: '0.0.59', Agent: Agent059, interrupts: true },
  { version: '0.0.57', Agent: Agent057, interrupts: true },
  { version: '0.0.52', Agent: Agent052, interrupts: false },
  { version: '0.0.45', Agent: Agent045, interrupts: false },
]

export interface Heard {
  readonly type: string
  readonly [field: string]: unknown
}

/** A client and what it says about what it hears: a warning is as good as a failure. */
export function connect(Agent: Make, url: string, options: { readonly threadId?: string; readonly headers?: Record<string, string> } = {}) {
  const warnings: string[] = []
  const note = (...words: unknown[]): void => void warnings.push(words.map(String).join(' '))
  const spies = (['warn', 'error'] as const).map((level) => vi.spyOn(console, level).mockImplementation(note))
  onTestFinished(() => spies.forEach((spy) => spy.mockRestore()))
  const client = new Agent({ url: `${url}/ag-ui`, ...options }) as Client
  const say = async (text: string, parameters: object = {}) => {
    client.addMessage({ id: crypto.randomUUID(), role: 'user', content: text })
    return run(parameters)
  }
  const run = async (parameters: object = {}) => {
    const events: Heard[] = []
    const { newMessages } = await client.runAgent(parameters, { onEvent: ({ event }: { event: Heard }) => void events.push(event) })
    return { events, newMessages, end: events.at(-1) as Heard }
  }
  return { client, warnings, say, run }
}

/** What an assistant said. */
export function textOf(messages: Client['messages']): string {
  return messages.flatMap(({ role, content }) => (role === 'assistant' && typeof content === 'string' ? [content] : [])).join('\n')
}
