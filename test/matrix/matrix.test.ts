import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FAILURE, HELLO, RESULT, SAY } from './far-agent.ts'
import { a2a03, a2a1 } from './inbound/a2a.ts'
import { acp } from './inbound/acp.ts'
import { agUi } from './inbound/ag-ui.ts'
import { eventsSse, eventsWebSocket } from './inbound/events.ts'
import type { Caller, Inbound } from './inbound/inbound.ts'
import { omnia } from './inbound/omnia.ts'
import { completions, realtime, responses } from './inbound/openai.ts'
import { Findings, matrixTable, page, type Check } from './page.ts'
import { REMOTES, startWorld, type Remote, type World } from './remotes.ts'

/** Every protocol that is spoken here, before every kind of agent elsewhere. */
const INBOUNDS: readonly Inbound[] = [eventsWebSocket, eventsSse, completions, responses, realtime, a2a1, a2a03, agUi, acp, omnia]

const findings = new Findings()
let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

type Try = (caller: Caller, inbound: Inbound, remote: Remote) => Promise<void>

const TRIES: Record<Check, Try> = {
  async text(caller) {
    expect(await caller.say(SAY.text)).toEqual({ text: HELLO, calls: [], error: undefined })
  },
  async tool(caller, { tool, arguments: args }) {
    expect(await caller.say(SAY.tool(tool, args))).toEqual({ text: `${tool} said ${RESULT}`, calls: [tool], error: undefined })
  },
  async cancel(caller, inbound, remote) {
    const tag = `${inbound.name}/${remote.name}`.replaceAll(/\W+/g, '-')
    expect(await caller.cancel(SAY.cancel(tag))).toMatch(/cancel|left|hangup/i)
    await world.endings.of(tag)
  },
  async error(caller) {
    const { error } = await caller.say(SAY.error)
    expect(error).toContain(FAILURE)
  },
}

describe.each(REMOTES)('$name', (remote) => {
  describe.each(INBOUNDS)('for clients of $name', (inbound) => {
    test.each(Object.entries(TRIES) as [Check, Try][])('%s', async (check, attempt) => {
      const caller = await inbound.connect(`${world.url}/agents/${remote.agent}`)
      await attempt(caller, inbound, remote)
      findings.add(inbound, remote, check)
    })
  })
})

// `npx vitest run test/matrix -u` writes it.
test('docs/matrix.md says what was found', async () => {
  const shown = { inbounds: INBOUNDS, remotes: REMOTES, findings }
  process.stdout.write(`\n${matrixTable(shown)}\n\n`)
  await expect(page(shown)).toMatchFileSnapshot('../../docs/matrix.md')
})
