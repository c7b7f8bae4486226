import { expect, test } from 'vitest'
import type { Draft } from '../protocol/events.ts'
import { answerDrafts, type AnswerReader } from './answer-drafts.ts'
import { text } from '../core/agent-kit/drafts.ts'

/** Tells every event as text; `bad` fails and `end` completes the answer. */
class Words implements AnswerReader {
  over = false

  read(data: string, out: Draft[]): void {
    if (data === 'bad') throw new Error('bad')
    if (data === 'end') this.over = true
    else out.push(text(data))
  }

  usage(out: Draft[]): void {
    out.push({ type: 'usage.delta', delta: { output_tokens: 1 } })
  }

  end(out: Draft[]): void {
    this.usage(out)
    if (!this.over) throw new Error('cut off')
  }
}

async function* events(batches: readonly string[], breaks = false): AsyncGenerator<{ data: string }[]> {
  for (const batch of batches) yield batch.split(' ').map((data) => ({ data }))
  if (breaks) throw new Error('the connection broke')
}

async function gathered(batches: AsyncIterable<{ data: string }[]>): Promise<{ told: unknown[]; error: unknown }> {
  const told: unknown[] = []
  try {
    for await (const draft of answerDrafts(() => batches, new Words())) {
      told.push(draft.type === 'response.delta' && draft.delta.type === 'text' ? draft.delta.text : draft.type)
    }
  } catch (error) {
    return { told, error: (error as Error).message }
  }
  return { told, error: undefined }
}

test('an answer is told as it comes, and what it cost at its end', async () => {
  expect(await gathered(events(['a b', 'c end']))).toEqual({ told: ['a', 'b', 'c', 'usage.delta'], error: undefined })
})

test('what was said before a failure is told before it, in the same batch too', async () => {
  expect(await gathered(events(['a', 'b bad c']))).toEqual({ told: ['a', 'b', 'usage.delta'], error: 'bad' })
  expect(await gathered(events(['a'], true))).toEqual({ told: ['a', 'usage.delta'], error: 'the connection broke' })
  expect(await gathered(events(['a']))).toEqual({ told: ['a', 'usage.delta'], error: 'cut off' })
})

test('a connection that breaks after the end of the answer harms nobody', async () => {
  expect(await gathered(events(['a end'], true))).toEqual({ told: ['a', 'usage.delta'], error: undefined })
})
