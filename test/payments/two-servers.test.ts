/** A paid agent on one server pays a paid agent on another with a part of its caller's token, and the other server is killed. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { connect, tokenWallet } from '../../src/client/node.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { remoteEvents } from '../../src/remotes/events/index.ts'
import { startChild } from '../support/child.ts'
import { moneyOf } from '../support/ledger-money.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'

const PROGRAM = fileURLToPath(new URL('two-servers-child.mjs', import.meta.url))

async function twoServers(...more: readonly string[]) {
  const data = mkdtempSync(join(tmpdir(), 'uamp-two-'))
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  let there = ''
  const boss = defineAgent(
    'boss',
    async function* (turn) {
      yield 'The expert says: '
      yield* remoteEvents({ name: 'helper', url: there, agent: 'expert', wallet: { from: 'caller', perCall: '0.04' } }).run(turn)
    },
    { price: { call: '0.05' } },
  )
  const server = await startServer(boss)
  const start = async () => {
    const child = await startChild(data, { program: [PROGRAM, data, server.url, 'secret-of-the-other-server', ...more] })
    there = child.url
    return child
  }
  const ask = async (token: string) => {
    const client = connect(server.url, { wallet: tokenWallet(token), agent: 'boss' })
    onTestFinished(() => client.close())
    return (await client.session()).ask('Why?')
  }
  return { server, money: moneyOf(server.ledger), start, ask }
}

async function textOf(answer: AsyncIterable<{ readonly type: string }>, heard: (text: string) => void = () => undefined): Promise<string> {
  let text = ''
  for await (const event of answer) {
    const { delta } = event as { delta?: { text?: string } }
    if (event.type !== 'response.delta' || delta?.text === undefined) continue
    text += delta.text
    heard(text)
  }
  return text
}

verifies('hand-on.both-paid', 'both servers are paid with the money of one caller', async () => {
  const { server, money, start, ask } = await twoServers()
  await start()
  const token = await money.token('1')
  expect(await textOf(await ask(token.text))).toBe('The expert says: because.')
  await expect.poll(() => token.left()).toBe('0.92')
  expect([await money.earned('boss'), await money.earned('expert')]).toEqual(['0.05', '0.03'])
  expect(await server.ledger.check()).toMatchObject({ problems: [], openLocks: 0 })
})

verifies('hand-on.gives-back', 'a server that is killed in mid-answer is not paid, and its lock is released when it is back', async () => {
  const { server, money, start, ask } = await twoServers('hang')
  const child = await start()
  const token = await money.token('1')
  const answer = await ask(token.text)
  let killed: Promise<void> | undefined
  const told = textOf(answer, (text) => {
    if (text.endsWith('because')) killed ??= child.kill()
  }).catch(() => 'cut off')
  await expect.poll(() => killed !== undefined).toBe(true)
  await killed
  expect((await server.ledger.check()).openLocks).toBe(1)
  await start()
  await expect.poll(async () => (await server.ledger.check()).openLocks).toBe(0)
  // Whatever became of the boss's answer, the expert has nothing, and all that the boss has not is the caller's.
  await told
  await expect.poll(async () => Number(await token.left()) + Number(await money.earned('boss'))).toBe(1)
  expect(await money.earned('expert')).toBe('0.00')
  expect(await token.locked()).toBe('0.00')
  expect((await server.ledger.check()).problems).toEqual([])
})
