import { text } from '../../core/drafts.ts'
import type { Draft } from '../../protocol/events.ts'

export type Drafts = AsyncGenerator<Draft, void>

/** Word by word. */
export async function* say(sentence: string): Drafts {
  for (const word of sentence.match(/\s*\S+\s*$|\s*\S+/g) ?? []) yield text(word)
}

/** Waits `ms` between steps until the signal aborts. One listener for all of them: it is called for every delta. */
export function pacer(ms: number, signal: AbortSignal): () => Promise<void> {
  let wake: (() => void) | undefined
  signal.addEventListener('abort', () => wake?.(), { once: true })
  return () =>
    new Promise<void>((resolve) => {
      wake = resolve
      setTimeout(resolve, ms)
    })
}
