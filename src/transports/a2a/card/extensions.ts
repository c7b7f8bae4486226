import { EVENTS_EXTENSION } from '../tasks/shared.ts'
import type { AgentExtension } from './model.ts'

/** a2a-x402, version 0.2. */
const X402_EXTENSION = 'https://github.com/google-agentic-commerce/a2a-x402/blob/main/spec/v0.2'

/** What every agent here can do beyond the core of the protocol. */
export const EXTENSIONS: readonly AgentExtension[] = [
  { uri: EVENTS_EXTENSION, description: 'Thoughts, tool calls and progress as messages of the stream' },
  { uri: X402_EXTENSION, description: 'A task that costs something asks for its payment, and goes on when it is paid' },
]
