import { tokensIn } from '../../core/basics/tokens.ts'
import type { Message } from '../../protocol/message.ts'

/**
 * The newest part of a conversation that fits into so many tokens. It keeps system messages and the last message of the user. A call is
 * dropped together with its results, because no provider takes one without the other. Tokens are estimated from the length of texts,
 * which is good enough to stay below a window, not to fill it.
 */
export function fitting(messages: readonly Message[], tokens: number): readonly Message[] {
  let left = tokens
  for (const message of messages) left -= tokensIn(message)
  if (left >= 0) return messages
  const asked = messages.findLastIndex(({ role }) => role === 'user')
  const gone = new Set<Message>()
  const units = unitsOf(messages)
  for (const [index, unit] of units.entries()) {
    // The newest unit stays: there must be something to answer.
    if (left >= 0 || index === units.length - 1) break
    const loose = unit.filter((message) => message.role !== 'system' && message !== messages[asked])
    for (const message of loose) {
      gone.add(message)
      left += tokensIn(message)
    }
  }
  const kept = messages.filter((message) => !gone.has(message))
  return startingWithUser(kept)
}

/** Drops messages before the first one of a user: they answer something that is gone, and some providers refuse them. */
function startingWithUser(messages: readonly Message[]): readonly Message[] {
  const first = messages.findIndex(({ role }) => role === 'user')
  return first < 0 ? messages : messages.filter(({ role }, index) => index >= first || role === 'system')
}

/** Messages that are dropped together: one with calls and the results after it, or a single one. */
function unitsOf(messages: readonly Message[]): Message[][] {
  const units: Message[][] = []
  for (const message of messages) {
    const last = units.at(-1)
    if (message.role === 'tool' && last && last[0]?.role !== 'user') last.push(message)
    else units.push([message])
  }
  return units
}
