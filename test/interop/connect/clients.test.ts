/** An agent of `uamp connect` answers the clients of others, and ours, through `uamp serve`: three processes, or more. */
import { HttpAgent } from '@ag-ui/client'
import { OpenAI } from 'openai'
import { expect, test } from 'vitest'
import { finished, project } from '../../cli/run.ts'
import { KEY, Terminal } from '../../cli/terminal.ts'
import { verifies } from '../../support/verifies.ts'
import { artifactText, assembled, collect, firstTask, say, statesOf, taskOf, type SeenTask, type Update } from '../a2a/client.ts'
import { jsonRpc1, rest1 } from '../a2a/generation-1.ts'
import { connect as agUi, textOf } from '../ag-ui/clients.ts'
import { CALLER, connecting, counted, listening, startHost, type Connecting } from './places.ts'

const weather = { name: 'weather', description: 'The weather in a city', parameters: { type: 'object', properties: {} } }

interface Place {
  readonly cli: Connecting
  /** The agent's address at the host. */
  readonly at: string
}

async function place(): Promise<Place> {
  const { url } = await startHost()
  const cli = await connecting(url)
  const [, at = ''] = await cli.prints(/counter is at (http\S+)/)
  return { cli, at }
}

const openaiAt = (at: string): OpenAI => new OpenAI({ baseURL: `${at}/v1`, apiKey: CALLER, maxRetries: 0 })
const user = (content: string) => ({ model: 'counter', messages: [{ role: 'user' as const, content }] })

test.runIf(process.platform === 'linux')('the connecting process listens nowhere, while the host does', async () => {
  const host = await startHost()
  const cli = await connecting(host.url)
  expect(await listening(host.cli.pid)).toHaveLength(1)
  expect(await listening(cli.pid)).toEqual([])
  const { choices } = await openaiAt(`${host.url}/agents/counter`).chat.completions.create(user('count 3'))
  expect(choices[0]?.message.content).toBe('1 2 3')
  expect(await listening(cli.pid)).toEqual([])
})

verifies('connect.every-protocol', 'the official client of OpenAI: Completions, streamed and not', async () => {
  const { at, cli } = await place()
  const openai = openaiAt(at)
  const whole = await openai.chat.completions.create(user('count 200'))
  expect(whole.choices[0]).toMatchObject({ message: { content: counted(200) }, finish_reason: 'stop' })
  const chunks = await collect(await openai.chat.completions.create({ ...user('count 500'), stream: true }))
  expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe(counted(500))
  expect(chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? [])).toEqual(['stop'])
  expect(cli.runs).toEqual(['count 200', 'count 500'])
  await cli.prints(/for default\/caller\./)
  const { data } = await openai.models.list()
  expect(data.map(({ id }) => id)).toContain('counter')
})

verifies(['connect.questions', 'connect.cancel'], 'the official client of OpenAI: a tool that it runs, and leaving', async () => {
  const { at, cli } = await place()
  const openai = openaiAt(at)
  const cities: unknown[] = []
  const runner = openai.chat.completions.runTools({
    ...user('weather Ulm'),
    tools: [
      {
        type: 'function',
        function: { ...weather, parse: JSON.parse, function: (given: object) => (cities.push(given), 'sunny') },
      },
    ],
  })
  expect(await runner.finalContent()).toBe('Ulm: sunny')
  expect(cities).toEqual([{ city: 'Ulm' }])
  const stream = await openai.chat.completions.create({ ...user('forever completions'), stream: true })
  for await (const chunk of stream) if (chunk.choices[0]?.delta.content === '20 ') break
  await cli.prints(/cancelled completions\./)
})

verifies(['connect.every-protocol', 'connect.questions', 'connect.cancel'], 'the official client of OpenAI: Responses', async () => {
  const { at, cli } = await place()
  const openai = openaiAt(at)
  const whole = await openai.responses.create({ model: 'counter', input: 'count 100' })
  expect(whole).toMatchObject({ status: 'completed', output_text: counted(100) })
  const events = await collect(await openai.responses.create({ model: 'counter', input: 'count 300', stream: true }))
  expect(events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : '')).join('')).toBe(counted(300))
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))

  const tools = [{ type: 'function' as const, strict: false, ...weather }]
  const one = await openai.responses.create({ model: 'counter', input: 'weather Oslo', tools })
  const [call] = one.output
  if (call?.type !== 'function_call') throw new Error(`It did not call: ${JSON.stringify(one.output)}`)
  const output = [{ type: 'function_call_output' as const, call_id: call.call_id, output: 'rain' }]
  const two = await openai.responses.create({ model: 'counter', previous_response_id: one.id, input: output, tools })
  expect(two.output_text).toBe('Oslo: rain')

  const begun = await openai.responses.create({ model: 'counter', input: 'forever responses', background: true })
  await cli.prints(/run forever responses for/)
  expect(await openai.responses.cancel(begun.id)).toMatchObject({ status: 'cancelled' })
  await cli.prints(/cancelled responses\./)
})

for (const { name, connect } of [jsonRpc1, rest1]) {
  verifies(
    ['connect.every-protocol', 'connect.questions', 'connect.cancel'],
    `the official client of A2A, ${name}: card, task, stream, question, cancel`,
    async () => {
      const { at, cli } = await place()
      const client = await connect(at)
      expect(client.card).toMatchObject({ name: 'counter', streaming: true })
      const task = taskOf(await client.send(say('count 100')))
      expect(task.state).toBe('completed')
      expect(artifactText(task)).toBe(counted(100))
      const updates = await collect(client.stream(say('count 300')))
      expect(assembled(updates)).toBe(counted(300))
      expect(statesOf(updates).at(-1)).toBe('completed')

      const open = taskOf(await client.send(say('approve Delete')))
      expect(open).toMatchObject({ state: 'input-required' })
      expect(artifactText(taskOf(await client.send({ ...say('yes'), task: open.id })))).toBe('Delete: done')

      const seen: Update[] = []
      let cancelled: Promise<SeenTask> | undefined
      for await (const update of client.stream(say('forever a2a'))) {
        seen.push(update)
        if (cancelled || !assembled(seen).includes(' 20 ')) continue
        cancelled = client.cancel(firstTask(seen).id)
      }
      expect(statesOf(seen).at(-1)).toBe('canceled')
      expect(await cancelled).toMatchObject({ state: 'canceled' })
      await cli.prints(/cancelled a2a\./)
    },
  )
}

verifies(['connect.every-protocol', 'connect.questions', 'connect.cancel'], '@ag-ui/client: text, a tool of the page, abort', async () => {
  const { at, cli } = await place()
  const { client, say: ask, run, warnings } = agUi(HttpAgent, at, { headers: { authorization: `Bearer ${CALLER}` } })
  const { newMessages, events } = await ask('count 300')
  expect(textOf(newMessages)).toBe(counted(300))
  expect([events[0]?.type, events.at(-1)?.type]).toEqual(['RUN_STARTED', 'RUN_FINISHED'])
  const tools = [weather]
  const calls = (await ask('weather Bonn', { tools })).newMessages.flatMap(({ toolCalls }) => toolCalls ?? [])
  expect(calls).toMatchObject([{ function: { name: 'weather', arguments: '{"city":"Bonn"}' } }])
  client.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId: calls[0]?.id, content: 'snow' })
  expect(textOf((await run({ tools })).newMessages)).toBe('Bonn: snow')
  expect(warnings).toEqual([])
  client.addMessage({ id: crypto.randomUUID(), role: 'user', content: 'forever ag-ui' })
  await Promise.allSettled([client.runAgent({}, { onTextMessageContentEvent: () => client.abortRun() })])
  await cli.prints(/cancelled ag-ui\./)
})

verifies('connect.every-protocol', '`uamp chat` in a script: the answer alone, or every event', async () => {
  const { at } = await place()
  const cwd = await project()
  const chat = (...args: readonly string[]) => finished(['chat', at, ...args], { cwd, env: { HOME: cwd, UAMP_TOKEN: CALLER } })
  expect(await chat('-q', 'count 50')).toEqual({ code: 0, stdout: `${counted(50)}\n`, stderr: '' })
  const { stdout, code } = await chat('--json', 'count 50')
  const events = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { type: string; delta?: { text: string }; seq?: number })
  expect(events.map(({ delta }) => delta?.text ?? '').join('')).toBe(counted(50))
  expect([code, events.at(-1)?.type]).toEqual([0, 'response.done'])
})

test.runIf(process.platform === 'linux')('`uamp chat` in a terminal: an answer, and Ctrl-C', async () => {
  const { at, cli } = await place()
  const cwd = await project()
  const env = { HOME: cwd, XDG_STATE_HOME: `${cwd}/state`, TMPDIR: cwd, UAMP_TOKEN: CALLER }
  const terminal = new Terminal(['chat', at], { cwd, env })
  await terminal.answers(/ listens\./)
  await terminal.says('count 5', /^1 2 3 4 5$/m)
  terminal.clear()
  terminal.write(`forever chat${KEY.enter}`)
  await terminal.prints(/ 20 /)
  terminal.write(KEY.ctrl('c'))
  await cli.prints(/cancelled chat\./)
  await terminal.answers(/\(cancelled\)/)
})
