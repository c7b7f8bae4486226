import type { Turn } from '../ports/agent.ts'

/** A turn with some of its parts changed. Not a spread: what it is a copy of has getters and methods. */
export function derivedTurn(turn: Turn, changes: Partial<Turn>): Turn {
  const { id, sessionId, messages, said, duplex, silent, through, config, principal, client, signal, http, redact } = turn
  return {
    id,
    sessionId,
    messages,
    said,
    duplex,
    silent,
    through,
    config,
    principal,
    client,
    signal,
    http,
    redact,
    ask: (type, question, options) => turn.ask(type, question, options),
    ...changes,
  }
}
