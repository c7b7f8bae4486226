import { text } from '../../core/agent-kit/drafts.ts'
import type { Turn } from '../../core/ports/agent.ts'
import type { Draft } from '../../protocol/events.ts'

export type Drafts = AsyncGenerator<Draft, void>

/** Says a sentence word by word. */
export async function* say(sentence: string, turn: Turn): Drafts {
  const words = sentence.match(/\s*\S+\s*$|\s*\S+/g) ?? []
  for (const word of words) yield text(word)
  yield spent(turn, words.length)
}

/** The usage of an answer. The demo has no tokens, so a word of output and four letters of input count as one. */
export function spent({ messages }: Turn, words: number): Draft {
  let letters = 0
  for (const { content = '' } of messages) letters += content.length
  return { type: 'usage.delta', delta: { input_tokens: Math.ceil(letters / 4), output_tokens: words } }
}

/** Waits `ms` between steps until the signal aborts. All steps share one listener, because there is one for every delta. */
export function pacer(ms: number, signal: AbortSignal): () => Promise<void> {
  let wake: (() => void) | undefined
  signal.addEventListener('abort', () => wake?.(), { once: true })
  return () =>
    new Promise<void>((resolve) => {
      wake = resolve
      setTimeout(resolve, ms)
    })
}
