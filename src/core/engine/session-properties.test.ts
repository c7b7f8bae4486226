import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ClientEvent, Draft, ServerEvent } from '../../protocol/events.ts'
import { memoryStore } from '../../stores/memory.ts'
import { AgentRegistry } from './agent-registry.ts'
import { defineAgent } from '../agent-kit/define-agent.ts'
import { createGateway } from './gateway.ts'
import type { Session } from '../ports/session.ts'

const principal = { tenant: 'default', id: 'someone', scopes: [] }
const text = (piece: string): Draft => ({ type: 'response.delta', delta: { type: 'text', text: piece } })
const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Does what its last message says, letter by letter. */
const puppet = defineAgent('puppet', async function* (turn) {
  for (const letter of turn.messages.at(-1)?.content ?? '') {
    if (letter === 'd') yield text('d')
    if (letter === 't') yield { type: 'thinking', content: 't', is_delta: true }
    if (letter === 'w') await tick()
    if (letter === 'a') await turn.ask('tool.call', { name: 'f', arguments: '{}' }, { timeoutMs: 20 }).catch(() => undefined)
    if (letter === 'x') throw new Error('x')
    if (letter === 'e') yield { type: 'response.error', error: { code: 'e', message: 'e' } }
    if (letter === 'c') yield { type: 'response.cancelled' }
  }
})

type Step = { readonly do: 'input' | 'create' | 'cancel' | 'answer' | 'wait' | 'query' | 'repeat'; readonly script: string }
const steps = fc.array(
  fc.record({
    do: fc.constantFrom<Step['do']>('input', 'create', 'create', 'cancel', 'answer', 'wait', 'query', 'repeat'),
    script: fc.string({ unit: fc.constantFrom('d', 'd', 'd', 't', 'w', 'w', 'a', 'x', 'e', 'c'), maxLength: 12 }),
  }),
  { maxLength: 30 },
)

async function play(session: Session, script: readonly Step[], heard: readonly ServerEvent[]): Promise<void> {
  let n = 0
  let last: ClientEvent | undefined
  for (const { do: action, script: text } of script) {
    const event_id = `e${++n}`
    const call = heard.findLast(({ type }) => type === 'tool.call') as { call_id: string } | undefined
    const events: Record<Step['do'], ClientEvent | undefined> = {
      input: { type: 'input.text', event_id, text },
      create: { type: 'response.create', event_id },
      cancel: { type: 'response.cancel', event_id },
      answer: { type: 'tool.result', event_id, call_id: call?.call_id ?? 'none', result: '1' },
      query: { type: 'capabilities.query', event_id },
      repeat: last,
      wait: undefined,
    }
    const event = events[action]
    if (event) last = event
    if (event) void session.send(event).catch(() => undefined)
    else await tick()
  }
}

for (const persist of [true, false]) {
  test(`whatever clients and agents do, the log stays in order (${persist ? 'stored' : 'not stored'})`, async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.boolean(), async (script, hasty) => {
        const agents = new AgentRegistry()
        agents.add(puppet)
        const gateway = createGateway({ agents, store: memoryStore() })
        const config = { modalities: ['text'] }
        const init = { transport: 'test', agent: 'puppet', principal, config, duplex: true, persist, onDetach: 'continue' } as const
        const session = await gateway.open(init)
        const heard: ServerEvent[] = []
        const reading = (async () => {
          for await (const batch of session.read({ after: 0, extensions: 'all' })) for (const { event } of batch) heard.push(event)
        })()
        await play(session, script, heard)
        if (hasty) await session.end()
        for (let n = 0; gateway.openResponses > 0 && n < 1000; n++) await new Promise((resolve) => setTimeout(resolve, 1))
        expect(gateway.openResponses).toBe(0)
        await session.end()
        await reading
        await gateway.close()
        check(heard)
      }),
      { numRuns: 150 },
    )
  })
}

function check(heard: readonly ServerEvent[]): void {
  expect(heard.map(({ seq }: { seq?: number | undefined }) => seq)).toEqual(heard.map((_, index) => index + 1))
  expect(heard[0]?.type).toBe('session.created')
  expect(heard.at(-1)?.type).toBe('session.end')
  let open: string | undefined
  const ended = new Set<string>()
  for (const event of heard) {
    const id = 'response_id' in event ? event.response_id : undefined
    if (event.type === 'response.created') {
      expect(open).toBeUndefined()
      open = id
    } else if (event.type === 'response.done' || event.type === 'response.error' || event.type === 'response.cancelled') {
      expect(id).toBe(open)
      ended.add(id as string)
      open = undefined
    } else if (id !== undefined) {
      expect(id).toBe(open)
      expect(ended.has(id)).toBe(false)
    }
  }
  expect(open).toBeUndefined()
}
