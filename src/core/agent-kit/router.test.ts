import { expect, test } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import type { Handler, HandlerTurn, Observer, RoutedEvent } from '../ports/skill.ts'
import { Router } from './router.ts'

const turn = {} as HandlerTurn
const said = (text: string): RoutedEvent => ({ type: 'response.delta', delta: { type: 'text', text } })

/** A handler that answers each event with the given ones. */
function handler(
  name: string,
  subscribes: Handler['subscribes'],
  outputs: (event: RoutedEvent) => RoutedEvent[],
  priority?: number,
): Handler {
  return {
    name,
    subscribes,
    ...(priority !== undefined && { priority }),
    async *process(event) {
      yield* outputs(event)
    },
  }
}

async function routed(handlers: readonly Handler[], event: RoutedEvent, observers: readonly Observer[] = []): Promise<RoutedEvent[]> {
  const router = new Router({ handlers, observers })
  const out: RoutedEvent[] = []
  for await (const draft of router.route(event, turn)) out.push(draft)
  return out
}

function watcher(subscribes: Observer['subscribes']) {
  const seen: RoutedEvent[] = []
  const observer: Observer = { name: 'watcher', subscribes, observe: (event) => void seen.push(event) }
  return { observer, seen, settled: () => new Promise((resolve) => setTimeout(resolve, 5)) }
}

const input: RoutedEvent = { type: 'input.text', text: 'hi' }

verifies(
  'uamp:routing:produces',
  'what a handler says it makes is routed in turn; what it does not say reaches nobody, and is told to observers',
  async () => {
    const { observer, seen, settled } = watcher(['system.unroutable'])
    const outputs = (): RoutedEvent[] => [{ type: 'mood.felt' }, { type: 'mood.hidden' }, said('undeclared'), { type: 'system.ping' }]
    const first: Handler = { ...handler('first', ['input.text'], outputs), produces: ['mood.felt'] }
    const second = handler('second', [/^mood\./], ({ type }) => [said(type)])
    expect(await routed([first, second], input, [observer])).toEqual([said('mood.felt')])
    await settled()
    expect(seen).toEqual([
      { type: 'system.unroutable', original_event: { type: 'mood.hidden' } },
      { type: 'system.unroutable', original_event: said('undeclared') },
    ])
  },
)

verifies('uamp:routing:subscribes', 'an event goes to who subscribes to it, and so does what that one makes', async () => {
  const handlers = [
    handler('first', ['input.text'], () => [{ type: 'analyze_emotion', text: 'hi' }]),
    handler('second', ['analyze_emotion'], (event) => [said(`felt ${'text' in event ? String(event.text) : ''}`)]),
    handler('never', ['input.image'], () => [said('no')]),
  ]
  expect(await routed(handlers, input)).toEqual([said('felt hi')])
})

verifies(
  ['uamp:routing:pattern', 'uamp:routing:custom-types'],
  'a pattern takes types that were never listed; an exact type goes before it',
  async () => {
    const any = handler('any', [/^translate\./], ({ type }) => [said(type)], 5)
    const french = handler('french', ['translate.fr'], () => [said('bonjour')])
    expect(await routed([any, french], { type: 'translate.de' })).toEqual([said('translate.de')])
    expect(await routed([any, french], { type: 'translate.fr' })).toEqual([said('bonjour')])
  },
)

verifies(['uamp:routing:priority', 'uamp:routing:priority-default'], 'the higher priority wins, and 0 is the default', async () => {
  const low = handler('low', ['input.text'], () => [said('low')], -1)
  const usual = handler('usual', ['input.text'], () => [said('usual')])
  const high = handler('high', ['input.text'], () => [said('high')], 1)
  expect(await routed([low, usual, high], input)).toEqual([said('high')])
  expect(await routed([low, usual], input)).toEqual([said('usual')])
})

verifies('uamp:routing:observers', 'observers see without taking, and can neither slow nor break the path', async () => {
  const { observer, seen, settled } = watcher(['*'])
  const stuck: Observer = { name: 'stuck', subscribes: [/./], observe: () => new Promise(() => undefined) }
  const broken: Observer = { name: 'broken', subscribes: ['input.text'], observe: () => Promise.reject(new Error('ouch')) }
  const many = Array.from({ length: 1000 }, (_, n) => said(String(n)))
  expect(await routed([handler('h', ['input.text'], () => many)], input, [stuck, broken, observer])).toEqual(many)
  await settled()
  expect(seen.length).toBeGreaterThan(0)
})

verifies('uamp:routing:default-sink', '`*` gets what nobody else handles, and only that', async () => {
  const sink = handler('sink', ['*'], ({ type }) => [said(`caught ${type}`)])
  const maker = handler('maker', ['input.text'], () => [{ type: 'odd.thing' }, said('direct')])
  expect(await routed([maker, sink], input)).toEqual([said('caught odd.thing'), said('direct')])
})

verifies('uamp:routing:unroutable', 'what nobody takes is told to observers', async () => {
  const { observer, seen, settled } = watcher(['system.unroutable'])
  expect(await routed([], { type: 'odd.thing' }, [observer])).toEqual([])
  await settled()
  expect(seen).toEqual([{ type: 'system.unroutable', original_event: { type: 'odd.thing' } }])
})

verifies('uamp:routing:system-error', 'a handler that fails is told to observers, and the turn fails with it', async () => {
  const { observer, seen, settled } = watcher(['system.error'])
  const broken: Handler = {
    name: 'broken',
    subscribes: ['input.text'],
    // eslint-disable-next-line require-yield
    async *process() {
      throw new Error('secret')
    },
  }
  await expect(routed([broken], input, [observer])).rejects.toThrow('secret')
  await settled()
  expect(seen).toEqual([{ type: 'system.error', error: { code: 'internal', message: 'Internal error' } }])
  await expect(routed([handler('h', ['input.text'], () => [{ type: 'system.error', error: { message: 'told' } }])], input)).rejects.toThrow(
    'told',
  )
})

verifies('uamp:routing:system-stop', 'system.stop and system.cancel end what is going on, and it cleans up', async () => {
  for (const type of ['system.stop', 'system.cancel']) {
    let cleaned = false
    const stopping: Handler = {
      name: 'stopping',
      subscribes: ['input.text'],
      async *process() {
        try {
          yield said('before')
          yield { type }
          yield said('after')
        } finally {
          cleaned = true
        }
      },
    }
    expect(await routed([stopping], input)).toEqual([said('before')])
    expect(cleaned).toBe(true)
  }
})

verifies('uamp:routing:system-ping', 'system.ping is answered inside', async () => {
  const { observer, seen, settled } = watcher(['system.pong'])
  expect(await routed([handler('h', ['input.text'], () => [{ type: 'system.ping' }, said('x')])], input, [observer])).toEqual([said('x')])
  await settled()
  expect(seen).toEqual([{ type: 'system.pong' }])
})

test('an event never returns to a handler it came through', async () => {
  const ping = handler('ping', ['b.thing', 'input.text'], () => [{ type: 'a.thing' }])
  const pong = handler('pong', ['a.thing'], () => [{ type: 'b.thing' }])
  expect(await routed([ping, pong], input)).toEqual([])
})

test('an event that passes too many handlers is stopped', async () => {
  const chain = Array.from({ length: 12 }, (_, n) =>
    handler(`h${n}`, [n === 0 ? 'input.text' : `step.${n}`], () => [{ type: `step.${n + 1}` }]),
  )
  await expect(routed(chain, input)).rejects.toThrow('circles')
})

test('a handler may stand between the agent and the client', async () => {
  const loud: Handler = handler('loud', ['response.delta'], (event) => {
    const { delta } = event as { delta: { text: string } }
    return [said(delta.text.toUpperCase())]
  })
  expect(await routed([handler('h', ['input.text'], () => [said('hi')]), loud], input)).toEqual([said('HI')])
})
