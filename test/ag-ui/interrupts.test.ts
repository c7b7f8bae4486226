import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { toolRunner } from '../../src/core/tools/tool-loop.ts'
import { coin } from '../support/money.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { paid } from './agents.ts'
import { messagesOf, post, refusal, replay, run, user } from './wire.ts'

const input = { threadId: 't' }
const asks = user('u1', '/approve it')

async function interrupted(url: string, messages: readonly object[] = [asks]) {
  const { end, events } = await run(url, messages, { input })
  const [interrupt] = end['outcome'].interrupts as { id: string; [field: string]: unknown }[]
  return { id: interrupt?.id as string, interrupt, events }
}

const DECISIONS: readonly [name: string, entry: object, said: string][] = [
  ['an object', { status: 'resolved', payload: { approved: true } }, 'Approved: it'],
  ['yes', { status: 'resolved', payload: true }, 'Approved: it'],
  ['no', { status: 'resolved', payload: false }, 'Denied: it'],
  ['a reason', { status: 'resolved', payload: { approved: false, reason: 'too late' } }, 'Denied: it (too late)'],
  ['a cancel', { status: 'cancelled' }, 'Denied: it (cancelled)'],
]
for (const [name, entry, expected] of DECISIONS) {
  verifies('ag-ui.interrupt', `it is resumed with ${name}`, async () => {
    const { url } = await startServer(demo())
    const { id } = await interrupted(url)
    const { said, types } = await run(url, [asks], { input: { ...input, resume: [{ interruptId: id, ...entry }] } })
    expect(said).toBe(expected)
    expect(types[0]).toBe('RUN_STARTED')
  })
}

verifies('ag-ui.interrupt', 'it is resumed as the draft of it had it', async () => {
  const { url } = await startServer(demo())
  const { id } = await interrupted(url)
  const { said } = await run(url, [asks], { input: { ...input, resume: { interruptId: id, payload: { approved: true } } } })
  expect(said).toBe('Approved: it')
})

verifies('ag-ui.interrupt-pending', 'a run without a decision is refused, and the decision still counts after it', async () => {
  const { url } = await startServer(demo())
  const { id } = await interrupted(url)
  const refused = await refusal(await post(url, [asks, user('u2', 'hello?')], { input }))
  expect(refused).toMatchObject({ status: 409, code: 'conflict', details: { code: 'interrupt_pending', interrupts: [id] } })
  const resume = [{ interruptId: id, status: 'resolved', payload: true }]
  expect((await run(url, [asks], { input: { ...input, resume } })).said).toBe('Approved: it')
  const again = await refusal(await post(url, [asks], { input: { ...input, resume } }))
  expect(again).toMatchObject({ status: 400, details: { code: 'unknown_interrupt' } })
})

verifies(
  ['ag-ui.interrupt-pending', 'ag-ui.profile'],
  'a thread of a client that knows no resume was stuck at the first question',
  async () => {
    let wiped = 0
    const wipes = defineAgent('wipes', async function* (turn) {
      if (turn.messages.at(-1)?.content !== 'wipe') return yield text(`${turn.messages.length} messages`)
      const { approved } = await turn.ask('x.approval.request', { message: 'Really?' })
      if (approved) wiped++
    })
    const { url } = await startServer(wipes)
    const old = { ...input, protocolVersion: undefined }
    const asked = await run(url, [user('u1', 'wipe')], { input: old })
    expect(asked.end['outcome'].type).toBe('interrupt')
    // The same messages again decide nothing.
    expect(await refusal(await post(url, [user('u1', 'wipe')], { input: { ...input } }))).toMatchObject({ status: 409 })
    const next = await run(url, [user('u1', 'wipe'), user('u2', 'never mind')], { input: old })
    expect(next.said).toBe('2 messages')
    const after = [user('u1', 'wipe'), user('u2', 'never mind'), ...messagesOf(next.events), user('u3', 'and now?')]
    expect((await run(url, after, { input: old })).said).toBe('4 messages')
    expect(wiped).toBe(0)
  },
)

verifies('ag-ui.interrupt', 'who decides and says more is answered in the next run', async () => {
  const { url } = await startServer(demo())
  const { id } = await interrupted(url)
  const resume = [{ interruptId: id, status: 'resolved', payload: true }]
  const decided = await run(url, [asks, user('u2', 'and then?')], { input: { ...input, resume } })
  expect(decided.said).toBe('Approved: it')
  // Clients append the answer behind it.
  const next = await run(url, [asks, user('u2', 'and then?'), ...messagesOf(decided.events), user('u3', '/history')], { input })
  expect(next.said.split('\n')).toEqual(['user: /approve it', 'user: and then?', 'assistant: Approved: it', 'user: /history'])
})

verifies('ag-ui.interrupt', 'what a page changed while a question was open counts from the next run on', async () => {
  const { url } = await startServer(demo())
  const first = await run(url, [user('u0', 'one')], { input })
  const before = [user('u0', 'edited'), ...messagesOf(first.events)]
  const asked = await run(url, [user('u0', 'one'), ...messagesOf(first.events), asks], { input })
  const resume = [{ interruptId: asked.end['outcome'].interrupts[0].id, status: 'resolved', payload: true }]
  const decided = await run(url, [...before, asks], { input: { ...input, resume } })
  expect(decided.said).toBe('Approved: it')
  const { said } = await run(url, [...before, asks, ...messagesOf(decided.events), user('u3', '/history')], { input })
  expect(said.split('\n')[0]).toBe('user: edited')
})

verifies('ag-ui.interrupt', 'who cancels and says something else is answered', async () => {
  const { url } = await startServer(demo())
  const { id } = await interrupted(url)
  const resume = [{ interruptId: id, status: 'cancelled' }]
  expect((await run(url, [asks, user('u2', 'hello')], { input: { ...input, resume } })).said).toBe('You said: hello')
})

verifies('ag-ui.interrupt', 'one interrupt is not answered twice', async () => {
  const { url } = await startServer(demo())
  const { id } = await interrupted(url)
  const resume = [true, false].map((payload) => ({ interruptId: id, status: 'resolved', payload }))
  const refused = await refusal(await post(url, [asks], { input: { ...input, resume } }))
  expect(refused).toMatchObject({ status: 400, details: { code: 'duplicate_interrupt' } })
})

verifies(['ag-ui.interrupt', 'ag-ui.resume'], 'after a restart it is resumed, and the run before is still told', async () => {
  const data = mkdtempSync(join(tmpdir(), 'uamp-ag-ui-'))
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  const before = await startServer(demo(), { data })
  const asked = await run(before.url, [asks], { input: { ...input, runId: 'r1' } })
  await before.close({ graceMs: 0 })
  const { url } = await startServer(demo(), { data })
  expect((await replay(url, 'r1')).text).toBe(asked.text)
  const resume = [{ interruptId: asked.end['outcome'].interrupts[0].id, status: 'resolved', payload: true }]
  expect((await run(url, [asks], { input: { ...input, resume } })).said).toBe('Approved: it')
})

verifies('ag-ui.interrupt', 'what does not decide is refused', async () => {
  const { url } = await startServer(demo())
  const { id } = await interrupted(url)
  for (const payload of [undefined, 'yes', { ok: true }]) {
    const resume = [{ interruptId: id, status: 'resolved', payload }]
    const refused = await refusal(await post(url, [asks], { input: { ...input, resume } }))
    expect(refused).toMatchObject({ status: 400, message: expect.stringContaining('payload') })
  }
  const resume = [{ interruptId: 'another', status: 'resolved', payload: true }]
  expect(await refusal(await post(url, [asks], { input: { ...input, resume } }))).toMatchObject({ status: 400 })
  expect(await refusal(await post(url, 'hi', { input: { resume } }))).toMatchObject({ status: 400, details: { code: 'unknown_interrupt' } })
})

const careful = defineAgent('careful', async function* (turn) {
  const wipe = { name: 'wipe', needsApproval: true, run: () => 'wiped' }
  const [result] = yield* toolRunner(turn, { tools: [wipe] })([{ id: 'c1', name: 'wipe', arguments: '{"all":true}' }])
  yield text(`${result?.result}`)
})

verifies(['ag-ui.interrupt', 'ag-ui.order'], 'a tool that needs to be allowed', async () => {
  const { url } = await startServer(careful)
  const { interrupt, events } = await interrupted(url, [user('u1')])
  const call = { id: 'c1', name: 'wipe', arguments: '{"all":true}' }
  expect(interrupt).toMatchObject({ reason: 'tool_call', toolCallId: 'c1', metadata: { uamp: { tool_call: call } } })
  expect(events.map(({ type }) => type).slice(1)).toEqual(['TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END', 'RUN_FINISHED'])
  const resume = [{ interruptId: interrupt?.id, status: 'resolved', payload: { approved: true } }]
  const after = await run(url, [user('u1'), ...messagesOf(events)], { input: { ...input, resume } })
  expect(after.types.slice(1, 2)).toEqual(['TOOL_CALL_RESULT'])
  expect(after.said).toBe('wiped')
})

verifies('ag-ui.payment-asked', 'what has to be paid first is 402, and the same run with money is answered', async () => {
  const server = await startServer(paid)
  const { url } = server
  const refused = await refusal(await post(url, [user('u1')], { input }))
  expect(refused).toMatchObject({
    status: 402,
    code: 'payment_required',
    details: { accepts: [{ scheme: 'token', amount: '0.01', currency: 'USD' }] },
  })
  expect(await refusal(await post(url, [user('u1')], { input }))).toMatchObject({ status: 402 })
  expect((await run(url, [user('u1')], { input, headers: { 'x-payment': await coin(server, '0.01') } })).said).toBe('Paid with a token.')
})

verifies('ag-ui.payment-asked', 'a run that brings money is not refused, and its money is its own', async () => {
  const server = await startServer(paid)
  const { url } = server
  const { said, types, events } = await run(url, [user('u1')], { input, headers: { 'x-payment': await coin(server, '0.01') } })
  expect(said).toBe('Paid with a token.')
  expect(types.filter((type) => type === 'RUN_STARTED')).toHaveLength(1)
  const more = [user('u1'), ...messagesOf(events), user('u2')]
  expect(await refusal(await post(url, more, { input }))).toMatchObject({ status: 402 })
  const again = await run(url, more, { input: { ...input, forwardedProps: { uamp: { payment_token: await coin(server, '0.01') } } } })
  expect(again.said).toBe('Paid with a token.')
})

verifies('ag-ui.payment-asked', 'money in the middle of an answer is an interrupt', async () => {
  const server = await startServer(paid)
  const { url } = server
  const { id, interrupt, events } = await interrupted(url, [user('u1', 'later')])
  expect(interrupt).toMatchObject({
    reason: 'uamp:payment_required',
    metadata: { uamp: { requirements: { amount: '0.01', currency: 'USD' } } },
  })
  const messages = [user('u1', 'later'), ...messagesOf(events)]
  const worthless = await post(url, messages, { input: { ...input, resume: [{ interruptId: id, status: 'resolved', payload: {} }] } })
  expect(await refusal(worthless)).toMatchObject({ status: 402 })
  const resume = [{ interruptId: id, status: 'resolved', payload: { payment_token: await coin(server, '0.01') } }]
  expect((await run(url, messages, { input: { ...input, resume } })).said).toBe('Paid with a token.')
})

verifies('ag-ui.payment-asked', 'whoever answers an interrupt is asked for money by the next one', async () => {
  const agent = defineAgent('careful', async function* (turn) {
    await turn.ask('x.approval.request', { message: 'Really?' })
    await turn.charge({ amount: '0.01' })
    yield text('Done.')
  })
  const server = await startServer(agent)
  const answer = async (interruptId: string, payload: object) =>
    run(server.url, [asks], { input: { ...input, resume: [{ interruptId, status: 'resolved', payload }] } })
  const { id } = await interrupted(server.url)
  let { end } = await answer(id, { approved: true })
  for (const poor of ['0.001', '0.002']) {
    expect(end['outcome'].interrupts).toMatchObject([{ reason: 'uamp:payment_required' }])
    end = (await answer(end['outcome'].interrupts[0].id, { payment_token: await coin(server, poor) })).end
  }
  expect(end['outcome'].interrupts[0].message).toContain('The payment was refused')
  const { said } = await answer(end['outcome'].interrupts[0].id, { payment_token: await coin(server, '1') })
  expect(said).toBe('Done.')
})

verifies('ag-ui.payment-asked', 'who does not pay ends the run, and the thread goes on', async () => {
  const { url } = await startServer(paid)
  const { id, events } = await interrupted(url, [user('u1', 'later')])
  const messages = [user('u1', 'later'), ...messagesOf(events)]
  const declined = await run(url, messages, { input: { ...input, resume: [{ interruptId: id, status: 'cancelled' }] } })
  expect(declined.end).toMatchObject({ type: 'RUN_ERROR', code: 'payment_required' })
  const again = await interrupted(url, [...messages, user('u2', 'later')])
  expect(again.id).not.toBe(id)
})

verifies(['ag-ui.interrupt', 'ag-ui.resume'], 'a question in a form of its own is answered in that form also after a restart', async () => {
  const data = mkdtempSync(join(tmpdir(), 'uamp-ag-ui-'))
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  const form = { reason: 'acme:pick', responseSchema: { type: 'object', properties: { flight: { type: 'string' } } } }
  const agent = defineAgent('picks', async function* (turn) {
    const { extensions } = await turn.ask('x.approval.request', { message: 'Which?', extensions: { 'ag-ui': form } })
    yield text(JSON.stringify(extensions))
  })
  const before = await startServer(agent, { data })
  const { id, interrupt } = await interrupted(before.url)
  expect(interrupt).toMatchObject(form)
  await before.close({ graceMs: 0 })
  const { url } = await startServer(agent, { data })
  const resume = [{ interruptId: id, status: 'resolved', payload: { flight: 'LH1' } }]
  const { said } = await run(url, [asks], { input: { ...input, resume } })
  expect(JSON.parse(said)).toEqual({ 'ag-ui': { payload: { flight: 'LH1' } } })
})
