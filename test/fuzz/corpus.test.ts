import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { startServer } from '../support/server.ts'
import { uncovered } from './corpus/index.js'

test('a route that is new is fuzzed, too: every one is in the corpus', async () => {
  const asker = defineAgent('asker', async function* () {})
  const { url } = await startServer([demo(), asker], { defaultAgent: 'demo' })
  const { routes } = (await (await fetch(url)).json()) as { routes: string[] }
  expect(uncovered(routes)).toEqual({ missing: [], unknown: [] })
})
