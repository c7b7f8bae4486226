import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { demo } from '../src/agents/demo/index.ts'
import { heard, joins, post, run, user } from './ag-ui/wire.ts'
import { startServer } from './support/server.ts'

/** A released session leaves memory while the next run of its thread has found it, but has not begun yet. */
test('runs that come close together in one thread all count, and none is told an end that is not kept', async () => {
  const { url, logged } = await startServer(demo())
  for (let thread = 0; thread < 60; thread++) {
    const input = { threadId: `thread ${thread}`, ...joins }
    const runs = []
    for (let n = 0; n < 6; n++) {
      runs.push(post(url, [user(`${thread}.${n}`)], { input }))
      await sleep((thread * 7 + n * 3) % 5)
    }
    const answers = await Promise.all(
      runs.map(async (response) => ({ status: (await response).status, text: await (await response).text() })),
    )
    const refused = answers.flatMap(({ status, text }) => (status === 200 ? [] : [text]))
    for (const text of refused) expect(text).toMatch('response_in_progress')
    const said = answers.filter(({ status }) => status === 200).map(({ text }) => heard(text).said)
    const { said: history } = await run(url, [user(`${thread}.end`, '/history')], { input })
    expect(history.split('\n').filter((line) => line.startsWith('assistant: '))).toHaveLength(said.length)
    for (const each of said) expect(history).toContain(`assistant: ${each}\n`)
  }
  expect(logged.filter(({ level }) => level === 'error')).toEqual([])
})
