import { expect, onTestFinished } from 'vitest'
import { connect, budget, tokenWallet, type UampClientError } from '../../src/client/node.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import { remoteEvents } from '../../src/remotes/events/index.ts'
import type { RemoteWallet } from '../../src/upstream/payer.ts'
import { moneyOf } from '../support/ledger-money.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'

const PRICE = { call: '0.03' }
const CALLER: RemoteWallet = { from: 'caller', perCall: '0.04' }

interface Chain {
  readonly wallet?: RemoteWallet
  readonly expert?: AgentPort
}

/** A boss whose answer costs 0.05, and who asks an expert over a socket, whose answer costs 0.03. */
async function chain({ wallet = CALLER, expert = theExpert }: Chain = {}) {
  let url = ''
  // The server is its own other one: both are paid by the same ledger.
  const boss = defineAgent(
    'boss',
    async function* (turn) {
      yield 'The expert says: '
      yield* remoteEvents({ name: 'helper', url, agent: 'expert', wallet }).run(turn)
    },
    { price: { call: '0.05' } },
  )
  const server = await startServer([boss, expert])
  url = server.url
  const money = moneyOf(server.ledger)
  const ask = async (token: string, perCall = '1') => {
    const client = connect(url, { wallet: budget(tokenWallet(token), { perCall }), agent: 'boss' })
    onTestFinished(() => client.close())
    return (await client.session()).say('Why?')
  }
  return { server, money, ask }
}

const theExpert = defineAgent(
  'expert',
  async function* () {
    yield 'because.'
  },
  { price: PRICE },
)

const failure = (answer: Promise<unknown>): Promise<UampClientError> =>
  answer.then(
    () => expect.unreachable(),
    (thrown: unknown) => thrown as UampClientError,
  )

verifies(['hand-on.both-paid', 'hand-on.gives-back'], 'both are paid with the money of one caller', async () => {
  const { server, money, ask } = await chain()
  const token = await money.token('1')
  expect(await ask(token.text)).toBe('The expert says: because.')
  await expect.poll(() => token.left()).toBe('0.92')
  expect(await money.earned('boss')).toBe('0.05')
  expect(await money.earned('expert')).toBe('0.03')
  expect(await token.locked()).toBe('0.00')
  expect((await server.ledger.check()).problems).toEqual([])
})

verifies('hand-on.bounds', 'no more than the remote may cost', async () => {
  const { money, ask } = await chain({ wallet: { from: 'caller', perCall: '0.02' } })
  const token = await money.token('1')
  expect(await failure(ask(token.text))).toMatchObject({
    code: 'payment_required',
    message: '"helper" wants 0.03 USD and is not paid: 0.03 is more than an answer may cost, 0.02',
  })
  expect(await money.earned('expert')).toBe('0.00')
})

verifies('hand-on.bounds', 'no deeper than the token may be handed on', async () => {
  const { money, ask } = await chain()
  const token = await money.token('1', { maxDepth: 0 })
  const { message } = await failure(ask(token.text))
  expect(message).toContain('handed on')
  expect(await money.earned('expert')).toBe('0.00')
})

verifies('hand-on.bounds', 'no more than the token holds, and no more than its owner pays', async () => {
  const { money, ask } = await chain()
  const poor = await money.token('0.06')
  await failure(ask(poor.text))
  expect(await money.earned('expert')).toBe('0.00')
  const rich = await money.token('1')
  expect(await failure(ask(rich.text, '0.06'))).toMatchObject({ code: 'budget_exceeded' })
  expect(await money.earned('expert')).toBe('0.00')
})

verifies('hand-on.gives-back', 'an expert that fails is not paid, and its caller has the money back', async () => {
  const expert = defineAgent(
    'expert',
    async function* () {
      yield 'be'
      throw new Error('dead')
    },
    { price: PRICE },
  )
  const { server, money, ask } = await chain({ expert })
  const token = await money.token('1')
  await failure(ask(token.text))
  await expect.poll(async () => Number(await token.left()) + Number(await money.earned('boss'))).toBe(1)
  expect(await money.earned('expert')).toBe('0.00')
  expect(await token.locked()).toBe('0.00')
  expect((await server.ledger.check()).problems).toEqual([])
})
