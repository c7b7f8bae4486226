import { EVENTS_EXTENSION, X402_EXTENSION } from '../../../wire/a2a/extensions.ts'
import type { AgentExtension } from './model.ts'

/** What every agent here can do beyond the core of the protocol. */
export const EXTENSIONS: readonly AgentExtension[] = [
  { uri: EVENTS_EXTENSION, description: 'Thoughts, tool calls and progress as messages of the stream' },
  { uri: X402_EXTENSION, description: 'A task that costs something asks for its payment, and goes on when it is paid' },
]
