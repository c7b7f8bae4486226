import { expect, test } from 'vitest'
import { llmAgent, modelOf } from '../../src/agents/llm/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import type { Skill } from '../../src/core/ports/skill.ts'
import { scriptedProvider, type ScriptedTurn } from '../../src/testing/scripted-provider.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { overWebSocket } from '../support/wire.ts'
import { answering, call, said } from './provider.ts'
import { verifies } from '../support/verifies.ts'

const scripted = (turns: readonly ScriptedTurn[]) => {
  const provider = scriptedProvider(turns)
  return { provider, model: modelOf(provider, 'm') }
}

test('skills bring prompts, hooks, tools and handlers in front of the model', async () => {
  const notes: string[] = []
  const skill: Skill = {
    name: 'ears',
    tools: [{ name: 'clock', run: () => 'noon' }],
    prompts: [
      { priority: 2, text: () => 'Second.' },
      { priority: 1, text: (turn) => `First, ${turn.principal.id}.` },
    ],
    hooks: { onStart: () => void notes.push('start'), onEnd: () => void notes.push('end') },
    observers: [{ name: 'meter', subscribes: ['usage.delta', 'response.delta'], observe: ({ type }) => void notes.push(type) }],
    handlers: [
      {
        name: 'transcriber',
        subscribes: ['input.image'],
        async *process() {
          yield { type: 'input.text', text: 'a picture of a clock' }
        },
      },
    ],
  }
  const { provider, model } = scripted([[call('c1', 'clock', {})], [said('noon')]])
  const agent = llmAgent({ name: 'bot', model, instructions: 'Zeroth.', skills: [skill] })
  expect(agent.capabilities.tools?.built_in_tools).toEqual(['clock'])
  const wire = await overWebSocket((await startServer(agent)).url)
  await wire.open({ session: { modalities: ['text'], instructions: 'Last.' } })
  expect(await wire.send({ type: 'input.image', image: 'aGk=', format: 'png' })).toBeUndefined()
  expect(await wire.send({ type: 'response.create' })).toBeUndefined()
  const end = await wire.next('response.done')
  expect(end['response'].output.at(-1)).toEqual({ type: 'text', text: 'noon' })
  const [request] = provider.requests
  expect(request?.config.instructions).toBe('Zeroth.\n\nFirst, anonymous.\n\nSecond.\n\nLast.')
  expect(request?.messages).toEqual([{ role: 'user', content: 'a picture of a clock' }])
  await expect.poll(() => notes).toEqual(['start', 'response.delta', 'response.delta', 'response.delta', 'end'])
})

test('tools that a skill gets while it runs are there in the next turn', async () => {
  const tools = [{ name: 'one', run: () => '1' }]
  const { provider, model } = scripted([[said('a')], [said('b')]])
  const wire = await overWebSocket((await startServer(llmAgent({ name: 'bot', model, skills: [{ name: 's', tools }] }))).url)
  await wire.open()
  await say(wire, 'go')
  tools.push({ name: 'two', run: () => '2' })
  await say(wire, 'go')
  expect(provider.requests.map(({ config }) => config.tools?.map((tool) => tool.function.name))).toEqual([['one'], ['one', 'two']])
})

test('the model hands over to another agent, which is given the conversation and not the call', async () => {
  const expert = scripted([[said('Refunded.')]])
  const billing = llmAgent({ name: 'billing', description: 'Money.', model: expert.model, instructions: 'You are billing.' })
  const triage = scripted([
    [said('One moment.'), call('h1', 'transfer_to_billing', { reason: 'refund' }), call('c1', 'lookup', {})],
    [said('Anything else?')],
  ])
  const agent = llmAgent({
    name: 'triage',
    model: triage.model,
    instructions: 'You are triage.',
    tools: [{ name: 'lookup', run: () => 'customer 7' }],
    handoffs: [billing],
  })
  const wire = await overWebSocket((await startServer(agent)).url)
  await wire.open({ session: { modalities: ['text'], instructions: 'Be kind.' } })
  const events = await say(wire, 'my money back')
  expect(textOf(events)).toBe('One moment.Refunded.')
  expect(events.find(({ type }) => type === 'x.subagent.started')).toMatchObject({ name: 'billing', call_id: 'h1' })
  expect(events.some(({ type }) => type === 'x.subagent.finished')).toBe(true)
  expect(triage.provider.requests[0]?.config.tools?.map(({ function: f }) => f.description)).toContain(
    'Hands the conversation over to billing. Money.',
  )
  const [request] = expert.provider.requests
  expect(request?.config.instructions).toBe('You are billing.\n\nBe kind.\n\nThe conversation was handed over by triage: refund')
  expect(request?.messages.map(({ role, tool_calls }) => [role, tool_calls?.map(({ name }) => name)])).toEqual([
    ['user', undefined],
    ['assistant', ['lookup']],
    ['tool', undefined],
  ])
  // The conversation goes on with the first one, which sees what it did.
  expect(textOf(await say(wire, 'thanks'))).toBe('Anything else?')
  expect(JSON.stringify(triage.provider.requests[1]?.messages)).toContain('transfer_to_billing')
})

verifies('model.handoff-circle', 'agents that hand over in a circle are made to answer', async () => {
  const handoffs: Parameters<typeof llmAgent>[0]['handoffs'] & object[] = []
  const asked: string[] = []
  const other = llmAgent({
    name: 'b',
    model: answering(({ messages }) => {
      asked.push('b')
      return messages.at(-1)?.role === 'tool' ? [said(messages.at(-1)?.content ?? '')] : [call('x', 'transfer_to_a', {})]
    }),
    handoffs: [
      {
        to: defineAgent('a', () => {
          throw new Error('not reached')
        }),
      },
    ],
  })
  handoffs.push(other)
  const first = llmAgent({ name: 'a', model: answering(() => (asked.push('a'), [call('y', 'transfer_to_b', {})])), handoffs })
  const wire = await overWebSocket((await startServer(first)).url)
  await wire.open()
  const events = await say(wire, 'go')
  expect(textOf(events)).toContain('a has had this turn already: answer yourself')
  expect(asked).toEqual(['a', 'b', 'b'])
})

test('the model hands over to a handler of a skill', async () => {
  const skill: Skill = {
    name: 'desk',
    handlers: [
      {
        name: 'human',
        subscribes: ['human.wanted'],
        async *process(event) {
          yield said(`A human comes: ${'text' in event ? String(event.text) : ''}`)
        },
      },
    ],
  }
  const { model } = scripted([[call('h1', 'transfer_to_human', { reason: 'angry' })]])
  const agent = llmAgent({
    name: 'bot',
    model,
    skills: [skill],
    handoffs: [{ to: 'human.wanted', name: 'human', description: 'A human.' }],
  })
  const wire = await overWebSocket((await startServer(agent)).url)
  await wire.open()
  expect(textOf(await say(wire, 'help'))).toBe('A human comes: angry')
})
