interface Event {
  readonly type: string
  readonly [field: string]: unknown
}

const OPENS = /^(TEXT_MESSAGE|TOOL_CALL|REASONING|REASONING_MESSAGE)_START$/
const GOES_ON = /^(TEXT_MESSAGE|TOOL_CALL|REASONING_MESSAGE)_(?:CONTENT|ARGS)$/
const CLOSES = /^(TEXT_MESSAGE|TOOL_CALL|REASONING|REASONING_MESSAGE)_END$/

/** What AG-UI's own clients would fail on, by the rules of their `verifyEvents` of 1.0; undefined: nothing. */
export function verify(events: readonly Event[]): string | undefined {
  const open = new Set<string>()
  const subagents = new Map<unknown, boolean>()
  let ended: string | undefined
  for (const [index, event] of events.entries()) {
    const { type } = event
    if (ended !== undefined) return `${type} after ${ended}`
    if ((index === 0) !== (type === 'RUN_STARTED')) return `${type} in place ${index}`
    const key = (kind: string | undefined): string => `${kind} ${String(event['toolCallId'] ?? event['messageId'] ?? event['stepName'])}`
    const [, opens] = OPENS.exec(type) ?? (type === 'STEP_STARTED' ? [type, 'STEP'] : [])
    const [, goesOn] = GOES_ON.exec(type) ?? []
    const [, closes] = CLOSES.exec(type) ?? (type === 'STEP_FINISHED' ? [type, 'STEP'] : [])
    if (opens !== undefined && open.has(key(opens))) return `${type} of what is open: ${key(opens)}`
    if (opens !== undefined) open.add(key(opens))
    if (goesOn !== undefined && !open.has(key(goesOn))) return `${type} of what is not open: ${key(goesOn)}`
    if (closes !== undefined && !open.delete(key(closes))) return `${type} of what is not open: ${key(closes)}`
    const { subagentRunId, parentSubagentRunId } = event
    if (type === 'SUBAGENT_STARTED') {
      if (subagents.has(subagentRunId)) return 'a subagent begins twice'
      if (parentSubagentRunId !== undefined && !subagents.has(parentSubagentRunId)) return 'a parent has not begun'
      subagents.set(subagentRunId, true)
    } else if (type === 'SUBAGENT_FINISHED' || type === 'SUBAGENT_ERROR') {
      if (!subagents.get(subagentRunId)) return 'a subagent ends that does not run'
      subagents.set(subagentRunId, false)
    }
    if (type === 'RUN_FINISHED' && open.size > 0) return `it ends with ${[...open].join()}`
    if (type === 'RUN_FINISHED' && [...subagents.values()].includes(true)) return 'it ends with a subagent at work'
    if (type === 'RUN_FINISHED' || type === 'RUN_ERROR') ended = type
  }
  return undefined
}
