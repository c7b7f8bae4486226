import { describe, expect, test } from 'vitest'
import { COMMANDS } from '../../../src/agents/demo/commands.ts'
import { demo } from '../../../src/agents/demo/index.ts'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import { text } from '../../../src/core/agent-kit/drafts.ts'
import { coin } from '../../support/money.ts'
import { startServer } from '../../support/server.ts'
import { verifies } from '../../support/verifies.ts'
import { connect, textOf, VERSIONS } from './clients.ts'

/** With what each command is tried, and what a client shows of it. */
const SHOWN: Readonly<Record<string, readonly [said: string, shown: RegExp]>> = {
  count: ['/count 3', /^1 2 3$/],
  think: ['/think cats', /I thought about: cats/],
  tool: ['/tool add {"a":1,"b":2}', /add answered: \{"sum":3\}/],
  approve: ['/approve go', /^$/],
  progress: ['/progress 3', /Done in 3 steps/],
  image: ['/image', /Here is an image/],
  file: ['/file', /Here is a file/],
  audio: ['/audio 0.2', /A tone of/],
  video: ['/video', /Here is a video/],
  json: ['/json', /"answer":"demo"/],
  pay: ['/pay 1', /Paid 1 USD/],
  topup: ['/topup 1', /first half.*second half/s],
  delegate: ['/delegate x y', /^$/],
  state: ['/state', /The state went from 0 to 3/],
  error: ['/error teapot', /^$/],
  history: ['/history', /user: \/history/],
  big: ['/big 100000', /^x{100000}$/],
  help: ['/help', /I echo what you say/],
}

test('every command of the demo is tried', () => {
  expect(Object.keys(SHOWN).sort()).toEqual([...COMMANDS.keys()].sort())
})

describe.each(VERSIONS)('@ag-ui/client $version', ({ version, Agent }) => {
  verifies(['ag-ui.order', 'ag-ui.profile'], `${version} shows every command of the demo without a warning`, async () => {
    const server = await startServer(demo())
    const headers = { 'x-payment': await coin(server, '50') }
    for (const [said, shown] of Object.values(SHOWN)) {
      const { say, warnings } = connect(Agent, server.url, { headers })
      const { newMessages, events } = await say(said)
      expect(textOf(newMessages), said).toMatch(shown)
      expect(events[0]?.type, said).toBe('RUN_STARTED')
      expect(events.at(-1)?.type, said).toBe(/delegate|error/.test(said) ? 'RUN_ERROR' : 'RUN_FINISHED')
      expect(warnings, said).toEqual([])
    }
  })

  test('several runs of a thread are one conversation, and what was said is not said twice', async () => {
    const { url } = await startServer(demo())
    const { say, warnings } = connect(Agent, url)
    await say('Hello')
    await say('/think again')
    await say('/tool add {"a":1,"b":2}')
    const { newMessages } = await say('/history')
    const lines = textOf(newMessages).split('\n')
    expect(lines.filter((line) => line.startsWith('user:'))).toEqual([
      'user: Hello',
      'user: /think again',
      'user: /tool add {"a":1,"b":2}',
      'user: /history',
    ])
    expect(lines).toHaveLength(9)
    expect(warnings).toEqual([])
  })

  verifies('ag-ui.snapshot', `${version} that joins a thread shows it in its order, and goes on with it`, async () => {
    const { url } = await startServer(demo())
    const threadId = crypto.randomUUID()
    const first = connect(Agent, url, { threadId })
    await first.say('one')
    await first.say('two')
    const { client, say, warnings } = connect(Agent, url, { threadId })
    await say('three', { forwardedProps: { uamp: { join: true } } })
    const shown = client.messages.map(({ role, content }) => `${role}: ${String(content)}`)
    expect(shown).toEqual(['one', 'two', 'three'].flatMap((word) => [`user: ${word}`, `assistant: You said: ${word}`]))
    expect(textOf((await say('/history')).newMessages).split('\n')).toEqual([...shown, 'user: /history'])
    expect(warnings).toEqual([])
  })

  verifies('ag-ui.thread', `${version} that changes what was said is believed`, async () => {
    const { url } = await startServer(demo())
    const { client, say } = connect(Agent, url)
    await say('one')
    await say('two')
    client.messages = [{ ...client.messages[0], content: 'uno' } as never, ...client.messages.slice(1, 2)]
    const { newMessages } = await say('/history')
    expect(textOf(newMessages).split('\n')).toEqual(['user: uno', 'assistant: You said: one', 'user: /history'])
  })

  test('a tool of the page: the run ends with its call, and the next one brings the result', async () => {
    const { url } = await startServer(demo())
    const { client, say, run, warnings } = connect(Agent, url)
    const tools = [{ name: 'color', description: 'Changes the colour', parameters: { type: 'object', properties: {} } }]
    const { newMessages } = await say('/tool color {"to":"red"}', { tools })
    const call = newMessages.flatMap(({ toolCalls }) => toolCalls ?? [])[0]
    expect(call).toMatchObject({ function: { name: 'color', arguments: '{"to":"red"}' } })
    client.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId: call?.id, content: 'It is red now' })
    const after = await run({ tools })
    expect(textOf(after.newMessages)).toBe('color answered: It is red now')
    expect(client.messages.filter(({ role }) => role === 'tool')).toHaveLength(1)
    expect(warnings).toEqual([])
  })

  test('the state of the page is what the agent made of it', async () => {
    const { url } = await startServer(demo())
    const { client, say, warnings } = connect(Agent, url)
    await say('/state')
    expect(client.state).toEqual({ count: 3, items: ['item 1', 'item 2', 'item 3'] })
    expect(warnings).toEqual([])
  })

  test('leaving stops the agent', async () => {
    let stopped: () => void = () => undefined
    const stop = new Promise<void>((resolve) => (stopped = resolve))
    const agent = defineAgent('endless', async function* ({ signal }) {
      try {
        yield text('on and on')
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
      } finally {
        stopped()
      }
    })
    const { url } = await startServer(agent)
    const { client } = connect(Agent, url)
    client.addMessage({ id: 'u1', role: 'user', content: 'go' })
    const run = client.runAgent({}, { onTextMessageContentEvent: () => client.abortRun() })
    await Promise.allSettled([run])
    await stop
  })
})

test.each(VERSIONS.filter(({ interrupts }) => interrupts))('@ag-ui/client $version resumes an interrupt', async ({ Agent }) => {
  const { url } = await startServer(demo())
  const { say, run, warnings } = connect(Agent, url)
  const { end } = await say('/approve the plan')
  const { interrupts } = end['outcome'] as { interrupts: { id: string; message: string }[] }
  expect(interrupts).toMatchObject([{ reason: 'confirmation', message: 'the plan' }])
  const resume = interrupts.map(({ id }) => ({ interruptId: id, status: 'resolved', payload: { approved: true } }))
  const { newMessages } = await run({ resume })
  expect(textOf(newMessages)).toBe('Approved: the plan')
  expect(warnings).toEqual([])
})

test.each(VERSIONS.filter(({ interrupts }) => !interrupts))(
  '@ag-ui/client $version, which cannot resume, says something else',
  async ({ Agent }) => {
    const { url } = await startServer(demo())
    const { say, warnings } = connect(Agent, url)
    await say('/approve the plan')
    expect(textOf((await say('Hello')).newMessages)).toBe('You said: Hello')
    expect(warnings).toEqual([])
  },
)
