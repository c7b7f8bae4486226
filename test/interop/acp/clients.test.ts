import { expect } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { startServer } from '../../support/server.ts'
import { verifies } from '../../support/verifies.ts'
import { folder, WAYS, type Talker } from './clients.ts'

const textOf = ({ updates }: Talker, kind = 'agent_message_chunk'): string =>
  updates.map(({ sessionUpdate, content }) => (sessionUpdate === kind ? ((content as { text?: string }).text ?? '') : '')).join('')

for (const [name, way] of Object.entries(WAYS)) {
  verifies(['acp-1.prompt', 'acp-1.permission', 'acp-1.cancel', 'acp-1.load'], `the official client ${name}`, async () => {
    const at = { url: (await startServer(demo())).url, data: await folder() }
    const client = way(at)
    expect(await client.initialize()).toMatchObject({ protocolVersion: 1 })
    const session = await client.open()
    expect(await client.prompt(session, 'hello')).toMatchObject({ stopReason: 'end_turn' })
    await expect.poll(() => textOf(client)).toBe('You said: hello')
    for (const command of [
      '/tool add {"a":1,"b":2}',
      '/think so',
      '/image',
      '/file',
      '/audio 0.1',
      '/video',
      '/json',
      '/progress 3',
      '/state',
      '/help',
    ]) {
      expect(await client.prompt(session, command)).toMatchObject({ stopReason: 'end_turn' })
    }
    expect(await client.prompt(session, '/approve Go?')).toMatchObject({ stopReason: 'end_turn' })
    expect(client.permissions).toHaveLength(1)
    await expect.poll(() => textOf(client)).toContain('Approved: Go?')
    await expect(client.prompt(session, '/error of_its_own')).rejects.toMatchObject({ code: -32603 })
    const counting = client.prompt(session, '/count 100000 5')
    const before = client.updates.length
    await expect.poll(() => client.updates.length).toBeGreaterThan(before)
    await client.cancel(session)
    const next = client.prompt(session, 'after that')
    expect(await counting).toMatchObject({ stopReason: 'cancelled' })
    expect(await next).toMatchObject({ stopReason: 'end_turn' })
    await client.close()
    // In a new process, where it is one; else on a new connection.
    const again = way(at)
    await again.initialize()
    await again.load(session)
    await expect.poll(() => textOf(again, 'user_message_chunk')).toContain('hello')
    expect(textOf(again)).toContain('You said: hello')
    expect(await again.prompt(session, 'once more')).toMatchObject({ stopReason: 'end_turn' })
    await expect.poll(() => textOf(again)).toContain('You said: once more')
    await again.close()
  })
}
