/** Node warns of the eleventh listener on a signal, as it may be one that nobody removes: nothing that is usual may lead to it. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { defineAgent } from '../src/core/agent-kit/define-agent.ts'
import { text } from '../src/core/agent-kit/drafts.ts'
import type { Tool } from '../src/core/ports/skill.ts'
import { toolRunner } from '../src/core/tools/tool-loop.ts'
import { Client, overStdio } from './acp/wire.ts'
import { client } from './openai/responses-wire.ts'
import { startServer } from './support/server.ts'

const MANY = 16

/** The warnings that came since. */
function warnings(): () => Promise<string[]> {
  const heard: string[] = []
  const take = ({ name }: Error): void => void heard.push(name)
  process.on('warning', take)
  onTestFinished(() => void process.off('warning', take))
  return async () => {
    await nextTurn()
    return heard.filter((name) => name === 'MaxListenersExceededWarning')
  }
}

/** Calls a tool many times at once. */
const eager = (name: string, tools: readonly Tool[] = []) =>
  defineAgent('eager', async function* (turn) {
    const calls = Array.from({ length: MANY }, (_, index) => ({ id: `call_${index}`, name, arguments: '{"path":"/project/a"}' }))
    const results = yield* toolRunner(turn, { tools })(calls)
    yield text(results.map(({ result }) => result).join())
  })

const ALL_GOOD = Array.from({ length: MANY }, () => 'good').join()

test('many tools of the agent in one turn', async () => {
  const warned = warnings()
  const { url } = await startServer(eager('own', [{ name: 'own', run: () => 'good' }]))
  const { body } = await client(url).ask({ model: 'eager', input: 'go' })
  expect(body['output'].at(-1).content[0].text).toBe(ALL_GOOD)
  expect(await warned()).toEqual([])
})

test('many tools of an ACP client in one turn', async () => {
  const warned = warnings()
  const waiting: (() => void)[] = []
  const acp = await Client.connect(overStdio([eager('read_text_file')]), {
    'fs/read_text_file': async () => {
      await new Promise<void>((resolve) => {
        waiting.push(resolve)
        if (waiting.length === MANY) for (const go of waiting.splice(0)) go()
      })
      return { content: 'good' }
    },
  })
  await acp.initialize({ fs: { readTextFile: true } })
  await acp.say(await acp.open(), 'go')
  expect(acp.text).toBe(ALL_GOOD)
  expect(await warned()).toEqual([])
})

test.each([false, true])('many answers at once on a socket of Responses, in the background: %s', async (background) => {
  const warned = warnings()
  let go = (): void => undefined
  const gate = new Promise<void>((resolve) => (go = resolve))
  const { url } = await startServer(
    defineAgent('waits', async function* () {
      yield text('begun')
      await gate
    }),
  )
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/responses`)
  onTestFinished(() => socket.terminate())
  const count = { 'response.output_text.delta': 0, 'response.completed': 0 }
  socket.on('message', (data: Buffer) => {
    const { type } = JSON.parse(data.toString()) as { type: keyof typeof count }
    if (type in count) count[type]++
  })
  await new Promise((resolve) => socket.once('open', resolve))
  for (let lane = 0; lane < MANY; lane++) {
    socket.send(JSON.stringify({ type: 'response.create', stream_id: `lane-${lane}`, input: 'x', background }))
  }
  await expect.poll(() => count['response.output_text.delta']).toBe(MANY)
  go()
  await expect.poll(() => count['response.completed']).toBe(MANY)
  expect(await warned()).toEqual([])
})
