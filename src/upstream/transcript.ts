import { plainText, type Message } from '../protocol/message.ts'

/** Characters of an earlier conversation that are told. The beginning of a longer one is left out. */
const TRANSCRIPT = 100_000

const WHO = { user: 'User', assistant: 'Assistant' } as const

/** A conversation as text, for an agent that was not there. Empty if nothing was said. */
export function transcript(messages: readonly Message[]): string {
  const lines = messages.flatMap((message) => {
    const text = plainText(message)
    return (message.role === 'user' || message.role === 'assistant') && text !== '' ? [`${WHO[message.role]}: ${text}`] : []
  })
  if (lines.length === 0) return ''
  const whole = lines.join('\n\n')
  return `The conversation so far:\n\n${whole.length > TRANSCRIPT ? `…${whole.slice(-TRANSCRIPT)}` : whole}`
}
