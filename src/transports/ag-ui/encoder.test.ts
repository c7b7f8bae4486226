import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Batch, Visitor } from '../../core/ports/session.ts'
import type { Draft, ServerEvent } from '../../protocol/events.ts'
import { verifies } from '../../../test/support/verifies.ts'
import { RunEncoder, type Place, type RunPlan } from './encoder.ts'
import { asItIs, SseWire, type AgUiEvent } from './events.ts'
import { toLegacy } from './legacy.ts'
import { verify } from '../../../test/ag-ui/verify.ts'

const PLAN: RunPlan = {
  threadId: 't',
  runId: 'r',
  session: 'sess_1',
  response: 'resp_1',
  duplex: false,
  tools: new Set(['pick']),
  brought: new Set(['c3']),
}

const id = fc.constantFrom('c1', 'c2', 'c3')
const name = fc.constantFrom('a', 'b')
const text = fc.string({ maxLength: 5 })
const delta = (given: fc.Arbitrary<object>) => given.map((one) => ({ type: 'response.delta', delta: one }))

/** Anything that an agent may yield, in any order. */
const draft = fc.oneof(
  delta(fc.record({ type: fc.constant('text'), text, refusal: fc.option(fc.boolean(), { nil: undefined }) })),
  delta(fc.record({ id, name, arguments: text }).map((tool_call) => ({ type: 'tool_call', tool_call }))),
  delta(fc.record({ call_id: id, result: text }).map((tool_result) => ({ type: 'tool_result', tool_result }))),
  delta(fc.record({ call_id: id, text }).map((tool_progress) => ({ type: 'tool_progress', tool_progress }))),
  delta(fc.record({ type: fc.constant('thinking'), thinking: text })),
  delta(fc.constant({ type: 'image', image: 'aGk=', content_id: 'x' })),
  fc.record({
    type: fc.constant('thinking'),
    content: text,
    is_delta: fc.boolean(),
    signature: fc.option(fc.constant('s'), { nil: undefined }),
  }),
  fc.record({ type: fc.constant('tool.call'), call_id: id, name: fc.constantFrom('pick', 'other'), arguments: text }),
  fc.record({ type: fc.constant('tool.call_done'), call_id: id }),
  fc.record({ type: fc.constantFrom('x.step.started', 'x.step.finished'), name }),
  fc.record({
    type: fc.constant('x.subagent.started'),
    subagent_id: id,
    name,
    parent_id: fc.option(id, { nil: undefined }),
  }),
  fc.record({ type: fc.constant('x.subagent.finished'), subagent_id: id, status: fc.constantFrom('completed', 'failed', 'cancelled') }),
  fc.record({ type: fc.constant('x.approval.request'), approval_id: id, message: text }),
  fc.constant({ type: 'payment.required', requirements: { amount: '1', currency: 'USD' } }),
  fc.constant({ type: 'x.reasoning.encrypted', value: 'v' }),
  fc.constant({ type: 'x.state.snapshot', snapshot: null }),
  fc.constant({ type: 'x.messages.snapshot', messages: [{ role: 'assistant', content: 'x' }] }),
  fc.record({ type: fc.constant('progress'), target: fc.constant('response') }),
  fc.record({ type: fc.constant('transcript.delta'), transcript: text }),
  fc.record({ type: fc.constant('usage.delta'), delta: fc.constant({ input_tokens: 1, output_tokens: 1 }) }),
  fc.constant({ type: 'rate_limit', limit: 1, remaining: 0 }),
) as fc.Arbitrary<Draft>

const END = fc.constantFrom<Draft>(
  { type: 'response.done', response: { id: '', status: 'completed', output: [] } },
  { type: 'response.done', response: { id: '', status: 'completed', output: [], extensions: { uamp: { waiting: ['c1'] } } } },
  { type: 'response.cancelled' },
  { type: 'response.error', error: { code: 'x', message: 'y' } },
)

/** The log of a response as readers get it: bare texts and events, split anywhere into two batches. */
function batches(drafts: readonly Draft[], cut: number): Batch[] {
  const all = [{ type: 'response.created' }, ...drafts].map((given, index) => {
    return { ...given, event_id: '', response_id: PLAN.response, session_id: PLAN.session, seq: index + 1 } as unknown as ServerEvent & {
      seq: number
    }
  })
  const pieces = [all.slice(0, cut), all.slice(cut)]
  return pieces.map((events) => ({ visit: (visitor: Visitor) => events.forEach((event) => tell(event, visitor)) }) as unknown as Batch)
}

function tell(event: ServerEvent & { seq: number }, visitor: Visitor): void {
  if (event.type === 'response.delta' && event.delta.type === 'text' && !event.delta.refusal) visitor.text(event.delta.text, event.seq)
  else visitor.event(event, event.seq)
}

function encode(
  given: readonly Batch[],
  plan: RunPlan,
  { legacy = false, known }: { readonly legacy?: boolean; readonly known?: Place } = {},
): { events: AgUiEvent[]; text: string } {
  const encoder = new RunEncoder(plan, known && { known })
  const wire = new SseWire(legacy ? toLegacy : asItIs, plan.response)
  let written = ''
  for (const batch of given) {
    const frame = wire.frame((out) => encoder.read(batch, out)) as { eachText(visit: (piece: string) => void): void }
    frame.eachText((piece) => (written += piece))
  }
  const events = [...written.matchAll(/^data: ([^\n]*)$/gm)].map(([, data = '']) => JSON.parse(data) as AgUiEvent)
  return { events, text: written }
}

const runs = fc.record({ drafts: fc.array(draft, { maxLength: 25 }), end: END, cut: fc.nat(26), duplex: fc.boolean() })

verifies('ag-ui.order', 'whatever an agent yields, clients of 1.0 find no fault with it', () => {
  fc.assert(
    fc.property(runs, ({ drafts, end, cut, duplex }) => {
      const { events } = encode(batches([...drafts, end], cut), { ...PLAN, duplex })
      expect(verify(events)).toBeUndefined()
      expect(events.at(-1)?.type).toMatch(/^RUN_(FINISHED|ERROR)$/)
    }),
    { numRuns: 500 },
  )
})

verifies(['ag-ui.order', 'ag-ui.profile'], 'nor do those of 0.0.x, which know less', () => {
  fc.assert(
    fc.property(runs, ({ drafts, end, cut, duplex }) => {
      const { events } = encode(batches([...drafts, end], cut), { ...PLAN, duplex }, { legacy: true })
      expect(verify(events)).toBeUndefined()
      for (const { type, delta, content, outcome } of events) {
        expect(type).not.toMatch(/^SUBAGENT|^META/)
        if (type === 'TEXT_MESSAGE_CONTENT') expect(delta).not.toBe('')
        if (type === 'TOOL_CALL_RESULT') expect(content).toEqual(expect.any(String))
        if (outcome !== undefined)
          expect(
            Object.keys(outcome as object)
              .sort()
              .join(),
          ).toMatch(/^(type|interrupts,type)$/)
      }
    }),
    { numRuns: 300 },
  )
})

verifies('ag-ui.resume', 'from after any event, what is told is the rest', () => {
  fc.assert(
    fc.property(runs, fc.nat(), ({ drafts, end, cut }, any) => {
      const given = batches([...drafts, end], cut)
      const whole = encode(given, PLAN)
      const frames = whole.text.split(/(?<=\n\n)/)
      const at = any % frames.length
      const [, seq, part = Infinity] = /^id: (\d+)(?:\.(\d+))?-\w+\n/.exec(frames[at] as string) ?? []
      const rest = encode(given, PLAN, { known: { seq: Number(seq), part: Number(part) } })
      expect(rest.text).toBe(frames.slice(at + 1).join(''))
    }),
    { numRuns: 200 },
  )
})

test('the rules find what is wrong', () => {
  const started = { type: 'RUN_STARTED' }
  const finished = { type: 'RUN_FINISHED' }
  expect(verify([started, finished])).toBeUndefined()
  expect(verify([finished])).toBeDefined()
  expect(verify([started, { type: 'TEXT_MESSAGE_CONTENT', messageId: '1' }, finished])).toBeDefined()
  expect(verify([started, { type: 'TEXT_MESSAGE_START', messageId: '1' }, finished])).toBeDefined()
  expect(verify([started, { type: 'STEP_FINISHED', stepName: '1' }])).toBeDefined()
  expect(verify([started, finished, { type: 'CUSTOM' }])).toBeDefined()
})
