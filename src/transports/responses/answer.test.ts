import { expect, test } from 'vitest'
import { Entry, Slice, Stamp } from '../../core/log/entry.ts'
import type { Draft } from '../../protocol/events.ts'
import { Answer } from './answer.ts'
import { SSE, Wire } from './wire.ts'

test.each([0, 7])('a client that was told events which died with the process is told the end, also of the first response: %i', (before) => {
  const stamp = new Stamp('sess_1', 'resp_1')
  const first = before + 100_001
  const drafts: Draft[] = [{ type: 'response.created' }, { type: 'response.error', error: { code: 'interrupted', message: 'Stopped' } }]
  const entries = drafts.map((draft, index) => new Entry(stamp, first + index, draft))
  const wire = new Wire(SSE, 19)
  const answer = new Answer({ id: 'resp_1', agent: 'demo', config: { modalities: ['text'] }, endedAt: () => 0 }, wire)
  answer.seq = before
  let told = ''
  wire.to((text) => (told += text))
  new Slice(
    first,
    entries,
    entries.map(() => stamp),
  ).visit(answer)
  expect(told).toContain('event: response.failed')
  expect([...told.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number))).toEqual([100_001, 100_002, 100_003])
})
