import { expect, test } from 'vitest'
import { defineAgent } from '../src/core/agent-kit/define-agent.ts'
import type { Cell } from './sizes/cells.ts'
import { Lost, STREAMED_STORED, type Driver, type Stage } from './sizes/driver.ts'
import { DRIVERS } from './sizes/drivers/index.ts'
import { json, sse, Told, type Wire } from './support/raw.ts'
import { Pace } from './sizes/pace.ts'
import type { Said } from './sizes/said.ts'
import { startServer } from './support/server.ts'

/** The methods of ACP that are older than its own. */
const olderAcp = (streamed: boolean): Driver => ({
  name: `older ACP, ${streamed ? 'streamed' : 'whole'}`,
  choices: STREAMED_STORED,
  async ask(stage): Promise<Said> {
    const params = { messages: [{ role: 'user', content: stage.prompt }] }
    const request = { jsonrpc: '2.0', id: 1, method: 'prompt/submit', params }
    const url = `${await stage.url()}/acp`
    if (!streamed) throw told(await json(url, request))
    for await (const { data } of sse(url, request)) {
      const message: Wire = JSON.parse(data)
      if (message.id === 1) throw told(message)
    }
    throw new Lost('no end')
  },
})

function told({ error, result }: Wire): Error {
  return error ? new Told(String(error.data?.code ?? error.code), JSON.stringify(error)) : new Lost(JSON.stringify(result))
}

/** Those that talk to a server, and do not come back by themselves when it has gone. */
const drivers = [...DRIVERS, olderAcp(true), olderAcp(false)].filter(({ name }) => !/^our client|stdio/.test(name))

const cases = drivers.flatMap((driver) =>
  driver.choices.map(({ streamed, stored }) => {
    const cell: Cell = { transport: driver.name, size: '1 MiB', shape: 'many deltas', reader: 'fast', streamed, stored, sound: false }
    return [`${driver.name}, ${streamed ? 'streamed' : 'whole'}, ${stored ? 'stored' : 'not stored'}`, driver, cell] as const
  }),
)

/** `interrupted`, in the words of each protocol. */
const INTERRUPTED = /^(interrupted|server_error|AGENT_UNAVAILABLE)$/

test.each(cases)('%s: an answer that the end of the server cuts short ends in an error', async (_, driver, cell) => {
  let begun = (): void => undefined
  const begins = new Promise<void>((resolve) => (begun = resolve))
  const sayer = defineAgent(
    'sayer',
    async function* ({ signal }) {
      yield { type: 'response.delta', delta: { type: 'text', text: 'It begins' } }
      begun()
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    },
    { capabilities: { modalities: ['text', 'audio'] } },
  )
  const server = await startServer(sayer)
  const tasks: (() => void | Promise<void>)[] = []
  const stage: Stage = {
    cell,
    prompt: 'Go on',
    pace: new Pace(cell),
    url: () => Promise.resolve(server.url),
    after: (task) => void tasks.push(task),
  }
  const asked = driver.ask(stage).then(
    (heard) => expect.fail(`it looks complete: ${JSON.stringify(heard)}`),
    (thrown: unknown) => thrown,
  )
  await begins
  await server.close({ graceMs: 0 })
  const thrown = await asked
  for (const task of tasks) await task()
  expect(thrown, String(thrown)).toBeInstanceOf(Told)
  expect((thrown as Told).code, String(thrown)).toMatch(INTERRUPTED)
})
