import { describe, expect } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { startServer } from '../../support/server.ts'
import { say, textOf } from '../../support/talk.ts'
import { verifies } from '../../support/verifies.ts'
import type { Connect } from '../../support/wire.ts'

const ALICE = 'a-secret-0123456789abcdef'
const BOB = 'b-secret-0123456789abcdef'

/** What a client is told of its rate, in either binding. */
export function ratesContract(binding: string, connect: Connect): void {
  describe(`rates over ${binding}`, () => {
    verifies('uamp:response:rate-limit-early', 'what is left is told when a session begins', async () => {
      const limits = { messageBurst: 30, messagesPerSecond: 1, requestBurst: 30, requestsPerSecond: 1 }
      const { url } = await startServer(demo(), { limits })
      const wire = await connect(url)
      const before = Math.floor(Date.now() / 1000)
      const id = await wire.open()
      const told = await wire.next('rate_limit')
      expect(told).toMatchObject({ session_id: id, limit: 30 })
      expect(told).not.toHaveProperty('seq')
      // The socket has taken one message; HTTP has taken the POST and the stream.
      expect(told['remaining']).toBeGreaterThanOrEqual(27)
      expect(told['remaining']).toBeLessThan(30)
      expect(told['reset_at']).toBeGreaterThan(before)
      expect(told['reset_at']).toBeLessThan(before + 60)
      expect(wire.heard.findIndex(({ type }) => type === 'rate_limit')).toBeGreaterThan(
        wire.heard.findIndex(({ type }) => type === 'session.created'),
      )
    })

    verifies(
      'uamp:session:flood',
      'a flood is told rate_limited; each of its events is taken or refused, and others notice nothing',
      async () => {
        const limits = { messageBurst: 20, messagesPerSecond: 100, requestBurst: 20, requestsPerSecond: 5 }
        const { url } = await startServer(demo(), { limits, tokens: { alice: ALICE, bob: BOB } })
        const [flooding, other] = [await connect(url, { token: ALICE }), await connect(url, { token: BOB })]
        await flooding.open()
        await other.open()
        const answers = await Promise.all(Array.from({ length: 60 }, (_, n) => flooding.send({ type: 'input.text', text: `${n}` })))
        const refusals = answers.filter((answer) => answer !== undefined)
        const told = [...refusals, ...flooding.heard.flatMap(({ type, error }) => (type === 'session.error' ? [error] : []))]
        expect(told.length).toBeGreaterThan(0)
        for (const { code, details } of told) {
          expect(code).toBe('rate_limited')
          expect(details.retry_after).toBeGreaterThan(0)
        }
        expect(textOf(await say(other, 'hello'))).toBe('You said: hello')
      },
    )
  })
}
