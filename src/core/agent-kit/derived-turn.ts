import type { Turn } from '../ports/agent.ts'

/** A copy of a turn with some parts changed. A spread would lose the getters and methods of the original. */
export function derivedTurn(turn: Turn, changes: Partial<Turn>): Turn {
  const {
    id,
    sessionId,
    messages,
    said,
    duplex,
    silent,
    through,
    config,
    asked,
    transport,
    chat,
    principal,
    client,
    methods,
    signal,
    http,
    store,
    trace,
    redact,
  } = turn
  return {
    id,
    sessionId,
    messages,
    said,
    duplex,
    silent,
    through,
    config,
    asked,
    transport,
    chat,
    principal,
    client,
    methods,
    signal,
    http,
    store,
    trace,
    redact,
    ask: (type, question, options) => turn.ask(type, question, options),
    ...changes,
  }
}
