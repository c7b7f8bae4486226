// @ts-check
import { defineAgent, text, toolRunner, UampError } from '../../dist/index.js'

/** Whoever sees this last has the whole answer. */
export const FIN = ' fin'
/** The response that an answer belongs to, as the agent says it: not every protocol shows it. */
export const NAMED = /R:(resp_[\w-]+)/g
/** Free calls of the agent that has some, for each principal. */
export const FREE = 5

/** What a complete answer of each agent costs, in 10⁻⁹. @type {Readonly<Record<string, bigint>>} */
export const COSTS = {
  call: 1_000_000n,
  usage: 2_000_000n,
  tool: 3_000_000n,
  topup: 3_000_000n,
  free: 1_000_000n,
  slow: 1_000_000n,
  fails: 0n,
}

/** @type {import('../../dist/index.js').Tool} */
const lookUp = {
  name: 'look_up',
  price: { lock: () => '0.004', settle: () => '0.003' },
  run: () => 'found',
}

/** @param {import('../../dist/index.js').Turn} turn */
const name = (turn) => text(`R:${/** @type {any} */ (turn).responseId} `)

/** Agents that are paid in every way that there is. */
export const AGENTS = [
  defineAgent(
    'call',
    async function* (turn) {
      yield name(turn)
      yield text(FIN)
    },
    { price: { call: '0.001' } },
  ),
  defineAgent(
    'usage',
    async function* (turn) {
      yield name(turn)
      yield { type: 'usage.delta', delta: { input_tokens: 60, output_tokens: 20 } }
      yield text('and more')
      yield { type: 'usage.delta', delta: { input_tokens: 40, output_tokens: 30 } }
      yield text(FIN)
    },
    { price: { input: '10', output: '20', reserve: '0.0015' } },
  ),
  defineAgent('tool', async function* (turn) {
    const [result] = yield* toolRunner(turn, { tools: [lookUp] })([{ id: 'c1', name: 'look_up', arguments: '{}' }])
    // A tool that nobody pays for fails, and so does the answer.
    if (result?.is_error) throw new UampError('payment_required', 'Nobody paid for the tool')
    yield name(turn)
    yield text(FIN)
  }),
  defineAgent(
    'topup',
    async function* (turn) {
      yield name(turn)
      await turn.charge({ amount: '0.002', reason: 'The second half' })
      yield text('the second half')
      yield text(FIN)
    },
    { price: { call: '0.001' } },
  ),
  defineAgent(
    'free',
    async function* (turn) {
      yield name(turn)
      yield text(FIN)
    },
    { price: { call: '0.001', free: { calls: FREE, per: 'month' } } },
  ),
  defineAgent(
    'slow',
    async function* (turn) {
      yield name(turn)
      for (let step = 0; step < 4; step++) {
        await new Promise((resolve) => setTimeout(resolve, 8))
        yield text(`${step}`)
      }
      yield text(FIN)
    },
    { price: { call: '0.001' } },
  ),
  defineAgent(
    'fails',
    async function* (turn) {
      if (turn.messages.at(-1)?.content !== 'at once') yield name(turn)
      throw new UampError('provider_error', 'As it was told to')
    },
    { price: { call: '0.001' } },
  ),
]
