import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import { remoteAgUi } from '../../src/remotes/ag-ui/index.ts'
import { remoteCompletions } from '../../src/remotes/completions/index.ts'
import { remoteEvents } from '../../src/remotes/events/index.ts'
import { startServer } from '../support/server.ts'
import { say } from '../support/talk.ts'
import { overWebSocket } from '../support/wire.ts'

const REMOTES: Readonly<Record<string, (url: string) => AgentPort>> = {
  events: (url) => remoteEvents({ name: 'far', url }),
  completions: (url) => remoteCompletions({ name: 'far', url, model: 'm' }),
  'ag-ui': (url) => remoteAgUi({ name: 'far', url }),
}

test.each(Object.entries(REMOTES))('what an agent elsewhere (%s) may have begun is not asked a second time', async (_, remote) => {
  let asked = 0
  const there = createServer((request, response) => {
    asked++
    request.resume().on('end', () => response.writeHead(500).end())
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void there.close())
  await once(there, 'listening')
  const here = await startServer(remote(`http://127.0.0.1:${(there.address() as AddressInfo).port}`))
  const wire = await overWebSocket(here.url)
  await wire.open()
  expect((await say(wire, 'go')).at(-1)).toMatchObject({ type: 'response.error', error: { code: 'provider_error' } })
  expect(asked).toBe(1)
})
