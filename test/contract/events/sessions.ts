import { describe, expect, test } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import { text } from '../../../src/core/agent-kit/drafts.ts'
import { coin } from '../../support/money.ts'
import { mirror } from '../../support/agents.ts'
import { startServer } from '../../support/server.ts'
import { isEnd, mirrored, say, textOf } from '../../support/talk.ts'
import { verifies } from '../../support/verifies.ts'
import type { Connect, Heard } from '../../support/wire.ts'

/** Tells tokens apart: no test may leave a whole one behind. */
const short = (token = ''): string => token.slice(-8)

const refused = async (opening: Promise<unknown>): Promise<{ code: string; details?: Record<string, unknown> }> =>
  opening.then(
    () => Promise.reject(new Error('it was accepted')),
    ({ refusal }: { refusal: Heard }) => refusal['error'],
  )

/** Sessions, capabilities and versions, in either binding. */
export function sessionsContract(binding: string, connect: Connect): void {
  describe(`sessions over ${binding}`, () => {
    verifies(
      [
        'uamp:session:created',
        'uamp:session:object',
        'uamp:session:config',
        'uamp:capabilities:after-created',
        'uamp:version:echo',
        'uamp:session:echo',
      ],
      'session.create is answered by session.created and capabilities',
      async () => {
        const { url } = await startServer(demo())
        const wire = await connect(url)
        const before = Math.floor(Date.now() / 1000)
        const id = await wire.open({ agent: 'demo', chat: 'chat_1', session: { modalities: ['text'], instructions: 'Be brief.' } })
        await wire.next('capabilities')
        const [created, capabilities] = wire.heard.filter(({ type }) => type !== 'x.ack')
        expect(created).toMatchObject({
          type: 'session.created',
          uamp_version: '1.0',
          session_id: id,
          agent: 'demo',
          chat: 'chat_1',
          session: { id, status: 'active', config: { modalities: ['text'], instructions: 'Be brief.' } },
        })
        expect(created?.['session'].created_at).toBeGreaterThanOrEqual(before)
        expect(created?.['session'].created_at).toBeLessThanOrEqual(before + 60)
        expect(capabilities).toMatchObject({ type: 'capabilities', capabilities: { id: 'demo' } })
      },
    )

    verifies(
      ['uamp:session:agent-offline', 'uamp:session:agent'],
      'an agent is chosen by name; one that is not there is offline',
      async () => {
        const { url } = await startServer([demo(), mirror, { ...demo(), name: 'elsewhere', protocols: ['a2a'] }])
        const wire = await connect(url)
        for (const agent of ['nobody', 'elsewhere']) {
          expect(await refused(wire.open({ agent }))).toMatchObject({
            code: 'agent_offline',
            details: { agents: expect.arrayContaining(['demo', 'mirror']), retry_after: expect.any(Number) },
          })
        }
        const byPath = await fetch(`${url}/agents/nobody/events`, { method: 'POST', body: '{"type":"session.create"}' })
        expect(byPath.headers.get('retry-after')).not.toBeNull()
        expect(await byPath.json()).toMatchObject({ error: { code: 'agent_offline', details: { retry_after: expect.any(Number) } } })
        await wire.open({ agent: 'mirror' })
        expect(mirrored(await say(wire, 'hi')).messages.at(-1)?.content).toBe('hi')
      },
    )

    verifies(['uamp:version:mismatch', 'uamp:version:major'], 'another major version is refused, with what is supported', async () => {
      const { url } = await startServer(demo())
      const wire = await connect(url)
      expect(await refused(wire.open({ uamp_version: '2.0' }))).toMatchObject({
        code: 'version_mismatch',
        details: { server_version: '1.0', client_version: '2.0', supported_versions: ['1.0'] },
      })
    })

    verifies('uamp:version:minor', 'another minor version is welcome', async () => {
      const { url } = await startServer(demo())
      const wire = await connect(url)
      expect(await wire.open({ uamp_version: '1.7' })).toMatch(/^sess_/)
    })

    verifies(
      ['uamp:session:token', 'uamp:session:unauthorized', 'uamp:session:update-token', 'uamp:session:update-refused'],
      'tokens open sessions and are refreshed in place',
      async () => {
        const { url } = await startServer(mirror, { tokens: { alice: 'a-secret-0123456789abcdef', bob: 'b-secret-0123456789abcdef' } })
        const wire = await connect(url, { token: 'a-secret-0123456789abcdef' })
        expect(await refused(wire.open({ token: 'wrong' }))).toMatchObject({ code: 'unauthorized' })
        const id = await wire.open()
        expect(mirrored(await say(wire, 'hi')).principal.id).toBe('alice')
        expect(await wire.send({ type: 'session.update', session_id: id, token: 'a-secret-0123456789abcdef' })).toBeUndefined()
        expect(await wire.next('session.updated')).toMatchObject({ session_id: id })
        expect(await wire.send({ type: 'session.update', session_id: id, token: 'wrong' })).toMatchObject({ code: 'unauthorized' })
        expect(await wire.send({ type: 'session.update', session_id: id, token: 'b-secret-0123456789abcdef' })).toMatchObject({
          code: 'unauthorized',
        })
        expect(wire.heard.filter(({ type }) => type === 'session.updated')).toHaveLength(1)
      },
    )

    verifies('uamp:session:update-config', 'session.update changes the configuration for what comes after', async () => {
      const { url } = await startServer(mirror)
      const wire = await connect(url)
      const id = await wire.open({ session: { modalities: ['text'], instructions: 'One.' } })
      expect(mirrored(await say(wire, 'hi')).config.instructions).toBe('One.')
      await wire.send({ type: 'session.update', session_id: id, session: { instructions: 'Two.' } })
      const { config } = mirrored(await say(wire, 'hi'))
      expect(config).toMatchObject({ instructions: 'Two.', modalities: ['text'] })
    })

    verifies(['uamp:session:end-by-client'], 'a client ends its session; what it sends then is refused', async () => {
      const { url } = await startServer(demo())
      const wire = await connect(url)
      const id = await wire.open()
      await wire.send({ type: 'session.end', session_id: id, reason: 'user_left' }).catch(() => undefined)
      expect(await wire.next('session.end')).toMatchObject({ session_id: id, reason: 'user_left' })
      expect(await wire.send({ type: 'input.text', text: 'hello?', session_id: id })).toMatchObject({ code: 'not_found' })
    })

    verifies('uamp:session:end-by-server', 'the server ends a session and says why', async () => {
      const { url, gateway } = await startServer(demo())
      const wire = await connect(url)
      const id = await wire.open()
      const session = await gateway.attach(id, { tenant: 'default', id: 'anonymous', scopes: ['*'] })
      await session?.end('timeout')
      expect(await wire.next('session.end')).toMatchObject({ session_id: id, reason: 'timeout' })
    })

    verifies('uamp:session:timeout', 'a session that is idle for too long is told so, and ended', async () => {
      const { url } = await startServer(demo(), { limits: { sessionTtlMs: 1_000, sweepMs: 20 } })
      const wire = await connect(url)
      const id = await wire.open()
      expect(await wire.next('session.error')).toMatchObject({ session_id: id, error: { code: 'timeout' } })
      expect(await wire.next('session.end')).toMatchObject({ reason: 'timeout' })
    })

    verifies(
      ['uamp:capabilities:query', 'uamp:capabilities:required'],
      'capabilities.query is answered, also during a response',
      async () => {
        const { url } = await startServer(demo())
        const wire = await connect(url)
        await wire.open()
        await wire.next('capabilities')
        await wire.send({ type: 'input.text', text: '/count 50 20' })
        await wire.send({ type: 'response.create' })
        await wire.next('response.delta')
        await wire.send({ type: 'capabilities.query' })
        const { capabilities } = await wire.next('capabilities')
        expect(capabilities).toMatchObject({
          id: 'demo',
          provider: expect.any(String),
          modalities: expect.arrayContaining(['text']),
          supports_streaming: true,
          supports_thinking: true,
          supports_caching: false,
        })
        expect(wire.heard.some(isEnd)).toBe(false)
      },
    )

    verifies('uamp:capabilities:on-change', 'a change of the agent is announced to its open sessions', async () => {
      const { url, agents } = await startServer(demo())
      const wire = await connect(url)
      await wire.open()
      await wire.next('capabilities')
      agents.add(defineAgent('demo', async function* () {}, { capabilities: { modalities: ['text', 'smell'] } }))
      expect((await wire.next('capabilities'))['capabilities'].modalities).toEqual(['text', 'smell'])
    })

    verifies(['uamp:capabilities:client', 'uamp:capabilities:client-update'], 'the agent knows what the client can do', async () => {
      const { url } = await startServer(mirror)
      const wire = await connect(url)
      await wire.open()
      expect(mirrored(await say(wire, 'hi')).client).toMatchObject({ id: 'test' })
      const capabilities = {
        id: 'other',
        provider: 'test',
        modalities: ['text'],
        widgets: ['chart'],
        extensions: { uamp: { ack: true, events: true } },
      }
      await wire.send({ type: 'client.capabilities', capabilities })
      expect(mirrored(await say(wire, 'hi')).client).toMatchObject({ id: 'other', widgets: ['chart'] })
    })

    verifies(
      ['uamp:version:unknown-event-logged', 'uamp:events:system-from-client'],
      'unknown and system events are logged and do nothing',
      async () => {
        const { url, logged } = await startServer(demo())
        const wire = await connect(url)
        const id = await wire.open()
        void wire.send({ type: 'future.thing', session_id: id })
        void wire.send({ type: 'system.stop', session_id: id })
        expect(textOf(await say(wire, 'still here'))).toBe('You said: still here')
        expect(wire.heard.filter(({ type }) => type.endsWith('.error'))).toEqual([])
        const types = logged.filter(({ message }) => message.includes('unknown type')).map(({ fields }) => fields?.['type'])
        expect(types).toEqual(['future.thing', 'system.stop'])
      },
    )

    verifies('uamp:session:single', 'with one session, no kind of event has to name it', async () => {
      const payer = defineAgent('payer', async function* (turn) {
        if (turn.messages.at(-1)?.content === 'wait') await new Promise((resolve) => turn.signal.addEventListener('abort', resolve))
        const { result } = await turn.ask('tool.call', { name: 'look', arguments: '{}' })
        const { payment } = await turn.ask('payment.required', { requirements: { amount: '1', currency: 'USD' } })
        const { approved } = await turn.ask('x.approval.request', { message: 'Sure?' })
        const { config, client } = turn
        yield text(JSON.stringify({ result, approved, paid: short(payment.token), instructions: config.instructions, client: client?.id }))
      })
      const server = await startServer(payer)
      const paying = await coin(server, '5')
      const wire = await connect(server.url)
      const id = await wire.open()
      const tools = [{ type: 'function', function: { name: 'look' } }]
      const capabilities = { id: 'renamed', provider: 'test', modalities: ['text'], extensions: { uamp: { ack: true, events: true } } }
      for (const event of [
        { type: 'session.update', session: { instructions: 'New.', tools }, payment_token: paying },
        { type: 'client.capabilities', capabilities },
        { type: 'capabilities.query' },
        { type: 'input.text', text: 'go' },
        { type: 'response.create' },
      ])
        expect(await wire.send(event)).toBeUndefined()
      expect(await wire.next('session.updated')).toMatchObject({ session_id: id })
      const { call_id } = await wire.next('tool.call')
      expect(await wire.send({ type: 'tool.result', call_id, result: '"seen"' })).toBeUndefined()
      const { approval_id } = await wire.next('x.approval.request')
      expect(await wire.send({ type: 'x.approval.response', approval_id, approved: true })).toBeUndefined()
      await wire.next(isEnd)
      expect(JSON.parse(textOf(wire.heard))).toEqual({
        result: '"seen"',
        approved: true,
        paid: short(paying),
        instructions: 'New.',
        client: 'renamed',
      })
      await wire.send({ type: 'input.text', text: 'wait' })
      await wire.send({ type: 'response.create' })
      expect(await wire.send({ type: 'response.cancel' })).toBeUndefined()
      expect((await wire.next(isEnd)).type).toBe('response.cancelled')
      expect(await wire.send({ type: 'ping' })).toBeUndefined()
      await wire.send({ type: 'session.end' }).catch(() => undefined)
      expect(await wire.next('session.end')).toMatchObject({ session_id: id })
    })

    test('a payment token comes with the session, or with one input', async () => {
      const payer = defineAgent('payer', async function* (turn) {
        const { payment } = await turn.ask('payment.required', { requirements: { amount: '1', currency: 'USD' } })
        yield text(short(payment.token))
      })
      const server = await startServer(payer)
      const [ofSession, ofInput] = [await coin(server, '5'), await coin(server, '5')]
      const wire = await connect(server.url)
      await wire.open({ payment_token: ofSession })
      expect(textOf(await say(wire, 'one'))).toBe(short(ofSession))
      await wire.send({ type: 'input.text', text: 'two', payment_token: ofInput })
      expect(textOf(await say(wire, 'two'))).toBe(short(ofInput))
      expect(textOf(await say(wire, 'three'))).toBe(short(ofSession))
    })

    verifies(
      ['uamp:events:event-id-stamped', 'uamp:session:multiplex-stamp'],
      'the id of the session stands on every event, and every event has an id of its own',
      async () => {
        const { url } = await startServer(demo())
        const wire = await connect(url)
        const id = await wire.open()
        await say(wire, 'hello')
        const events = wire.heard.filter(({ type }) => type !== 'x.ack')
        expect(new Set(events.map((event) => event['session_id']))).toEqual(new Set([id]))
        expect(new Set(events.map((event) => event['event_id'])).size).toBe(events.length)
        for (const event of events) expect(event['event_id']).toMatch(/^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/)
      },
    )

    verifies('uamp:events:system-hidden', 'no system event reaches a client', async () => {
      const agent = defineAgent('odd', async function* () {
        yield { type: 'system.error', error: { code: 'x', message: 'inside' } } as never
        yield text('outside')
      })
      const { url } = await startServer(agent)
      const wire = await connect(url)
      await wire.open()
      expect(textOf(await say(wire, 'hi'))).toBe('outside')
      expect(JSON.stringify(wire.heard)).not.toContain('system.')
    })
  })
}
