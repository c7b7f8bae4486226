import type { AgUiEvent } from './events.ts'

/** Turns an event into one that clients of 0.0.x understand. They fail on unknown events, outcomes and results. */
export function toLegacy(event: AgUiEvent): AgUiEvent | undefined {
  switch (event.type) {
    case 'RUN_STARTED': {
      const { protocolVersion: _, ...rest } = event
      return rest as AgUiEvent
    }
    case 'RUN_FINISHED':
      return finished(event)
    case 'TOOL_CALL_RESULT':
      return { ...event, ...plain(event) }
    case 'MESSAGES_SNAPSHOT': {
      const messages = event['messages'] as readonly AgUiEvent[]
      return { ...event, messages: messages.map(legacyMessage) }
    }
    case 'SUBAGENT_STARTED':
      return { ...subagent(event), type: 'ACTIVITY_SNAPSHOT', content: { name: event['name'], status: 'working' } }
    case 'SUBAGENT_FINISHED':
      return { ...subagent(event), type: 'ACTIVITY_DELTA', patch: [{ op: 'add', path: '/status', value: 'completed' }] }
    case 'SUBAGENT_ERROR':
      return { ...subagent(event), type: 'ACTIVITY_DELTA', patch: [{ op: 'add', path: '/status', value: 'failed' }] }
    default:
      return event
  }
}

function legacyMessage(message: AgUiEvent): AgUiEvent {
  const { role, content } = message
  if (role === 'tool') return { ...message, ...plain(message) }
  return Array.isArray(content) ? { ...message, content: content.map(binary) } : message
}

/** Media as the oldest clients spell it. */
function binary(part: { readonly source?: { readonly type: string; readonly value: string; readonly mimeType: string } }): object {
  if (!part.source) return part
  const { type, value, mimeType } = part.source
  return { type: 'binary', mimeType, [type === 'data' ? 'data' : 'url']: value }
}

interface Outcome {
  readonly type: string
  readonly pendingToolCallIds?: unknown
}

function finished(event: AgUiEvent): AgUiEvent {
  const { outcome, ...rest } = event
  const { type, pendingToolCallIds } = outcome as Outcome
  // Pages take a success for the end of the turn, and would never run a call that is open.
  if (pendingToolCallIds !== undefined) return rest as AgUiEvent
  if (type !== 'cancelled') return event
  return { ...rest, type: event.type, metadata: { uamp: { ...uampOf(event['metadata']), cancelled: true } } }
}

/** Content parts as plain text, with the parts themselves in the metadata. */
function plain({ content, metadata }: Readonly<Record<string, unknown>>): object {
  if (typeof content === 'string') return {}
  const parts = content as readonly { readonly text?: string }[]
  return { content: parts.map(({ text = '' }) => text).join(''), metadata: { uamp: { ...uampOf(metadata), content } } }
}

function uampOf(metadata: unknown): object | undefined {
  return (metadata as { readonly uamp?: object } | undefined)?.uamp
}

function subagent({ subagentRunId }: AgUiEvent): object {
  return { messageId: subagentRunId, activityType: 'uamp.subagent' }
}
